-- CMulTable: the product of the tensors in a table.

local CMulTable = torch.class('nn.CMulTable', 'nn.Module')

function CMulTable:__init()
   nn.Module.__init(self)
   self.gradInput = {}
end

function CMulTable:compute(input)
   local product = input[1]
   for i = 2, #input do product = torch.cmul(product, input[i]) end
   return product
end
