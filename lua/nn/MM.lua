-- MM: the product of two matrices, or of two batches of matrices.

local MM = torch.class('nn.MM', 'nn.Module')

--- transA, transB: use the transposed matrix.
function MM:__init(transA, transB)
   nn.Module.__init(self)
   self.transA = transA or false
   self.transB = transB or false
   self.gradInput = {}
end

function MM:compute(input)
   local a, b = input[1], input[2]
   local d = a:dim()
   assert(d == 2 or d == 3, 'input tensors must be 2D or 3D')
   assert(b:dim() == d, 'input tensors must have the same number of dimensions')
   if self.transA then a = a:transpose(d - 1, d) end
   if self.transB then b = b:transpose(d - 1, d) end
   return d == 2 and torch.mm(a, b) or torch.bmm(a, b)
end
