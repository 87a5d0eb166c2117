-- Max: the largest value along a dimension, which is dropped.

local amax_dim = require('relume.core').op.amax_dim
local Max = torch.class('nn.Max', 'nn.Module')

--- dimension (default 1; negative: from the end) counts without the batch dimension when nInputDims is given.
function Max:__init(dimension, nInputDims)
   nn.Module.__init(self)
   self.dimension = dimension or 1
   self.nInputDims = nInputDims
end

-- The dimension to reduce, batch dimension skipped.
function Max:_getPositiveDimension(input)
   local dimension = self.dimension
   if dimension < 0 then
      return input:dim() + dimension + 1
   elseif self.nInputDims and input:dim() == self.nInputDims + 1 then
      return dimension + 1
   end
   return dimension
end

function Max:compute(input)
   local dim = self:_getPositiveDimension(input)
   return (amax_dim(input, dim - 1, input:dim() == 1))
end

function Max:type(type, tensorCache)
   self._indices = nil
   return nn.Module.type(self, type, tensorCache)
end
