-- Select: one slice of the input, which loses that dimension.

local Select = torch.class('nn.Select', 'nn.Module')

--- Both count from 1, negative from the end.
function Select:__init(dimension, index)
   nn.Module.__init(self)
   self.dimension = dimension
   self.index = index
end

function Select:compute(input)
   local dim, index = self.dimension, self.index
   if dim < 0 then dim = input:dim() + dim + 1 end
   if index < 0 then index = input:size(dim) + index + 1 end
   return input:select(dim, index):contiguous()
end
