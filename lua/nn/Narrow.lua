-- Narrow: a run of slices along a dimension.

local Narrow = torch.class('nn.Narrow', 'nn.Module')

--- length slices (default 1) from offset on. A negative length counts from the end: -1 is up to the last slice.
function Narrow:__init(dimension, offset, length)
   nn.Module.__init(self)
   self.dimension = dimension
   self.index = offset
   self.length = length or 1
   if not dimension or not offset then error 'nn.Narrow(dimension, offset, length)' end
end

function Narrow:compute(input)
   local dim, index, length = self.dimension, self.index, self.length
   if dim < 0 then dim = input:dim() + dim + 1 end
   if length < 0 then length = input:size(dim) - index + length + 2 end
   if index < 0 then
      index = 1
      length = input:size(dim) - length
   end
   return input:narrow(dim, index, length):contiguous()
end
