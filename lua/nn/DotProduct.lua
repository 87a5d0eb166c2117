-- DotProduct: the dot product of two vectors, or row by row of two matrices.

local DotProduct = torch.class('nn.DotProduct', 'nn.Module')

function DotProduct:__init()
   nn.Module.__init(self)
   self.gradInput = {}
end

function DotProduct:compute(input)
   local p = torch.cmul(input[1], input[2])
   if p:dim() == 1 then return torch.sum(p, 1) end
   return torch.sum(p, 2):select(2, 1)
end
