-- Sum: the sum (or mean) along a dimension.

local Sum = torch.class('nn.Sum', 'nn.Module')

--- dimension (default 1; negative: from the end) counts without the batch dimension when nInputDims is given. sizeAverage divides by
-- the size; squeeze (default true) drops the dimension.
function Sum:__init(dimension, nInputDims, sizeAverage, squeeze)
   nn.Module.__init(self)
   self.dimension = dimension or 1
   self.nInputDims = nInputDims
   self.sizeAverage = sizeAverage or false
   if squeeze ~= nil then
      assert(type(squeeze) == 'boolean', 'squeeze has to be true/false')
      self.squeeze = squeeze
   else
      self.squeeze = true
   end
end

-- The dimension to reduce, batch dimension skipped.
function Sum:_getPositiveDimension(input)
   local dimension = self.dimension
   if dimension < 0 then
      return input:dim() + dimension + 1
   elseif self.nInputDims and input:dim() == self.nInputDims + 1 then
      return dimension + 1
   end
   return dimension
end

function Sum:compute(input)
   local dim = self:_getPositiveDimension(input)
   assert(dim <= input:dim(), 'dimension exceeds number of input dimensions')
   local y = torch.sum(input, dim)
   if self.sizeAverage then y = y / input:size(dim) end
   if (self.squeeze == nil or self.squeeze) and y:dim() > 1 then y = y:select(dim, 1) end
   return y
end
