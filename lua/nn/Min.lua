-- Min: the smallest value along a dimension, which is dropped.

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
   local y = torch.min(input, dim)
   if input:dim() > 1 then y = y:select(dim, 1) end
   return y
end

function Min:type(type, tensorCache)
   self._indices = nil
   return nn.Module.type(self, type, tensorCache)
end
