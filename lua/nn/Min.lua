-- Min: the smallest value along a dimension, which is dropped.

local amin_dim = require('relume.core').op.amin_dim
local Min = torch.class('nn.Min', 'nn.Module')

--- dimension (default 1; negative: from the end) counts without the batch dimension when nInputDims is given.
function Min:__init(dimension, nInputDims)
   nn.Module.__init(self)
   self.dimension = dimension or 1
   self.nInputDims = nInputDims
end

-- The dimension to reduce, batch dimension skipped.
function Min:_getPositiveDimension(input)
   local dimension = self.dimension
   if dimension < 0 then
      return input:dim() + dimension + 1
   elseif self.nInputDims and input:dim() == self.nInputDims + 1 then
      return dimension + 1
   end
   return dimension
end

function Min:compute(input)
   local dim = self:_getPositiveDimension(input)
   return (amin_dim(input, dim - 1, input:dim() == 1))
end

function Min:type(type, tensorCache)
   self._indices = nil
   return nn.Module.type(self, type, tensorCache)
end
