-- MV: the product of a matrix and a vector, or of a batch of each.

local MV = torch.class('nn.MV', 'nn.Module')

--- trans: use the transposed matrix.
function MV:__init(trans)
   nn.Module.__init(self)
   self.trans = trans or false
   self.gradInput = {}
end

function MV:compute(input)
   local m, v = input[1], input[2]
   local d = m:dim()
   assert(d == 2 or d == 3, 'input matrix must be 2D or 3D')
   assert(v:dim() == d - 1, 'input vector must have one dimension less than the matrix')
   if self.trans then m = m:transpose(d - 1, d) end
   if d == 2 then return torch.mv(m, v) end
   return torch.bmm(m, v:contiguous():view(v:size(1), v:size(2), 1)):select(3, 1)
end
