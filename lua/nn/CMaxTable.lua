-- CMaxTable: the elementwise maximum of the tensors in a table.

local CMaxTable = torch.class('nn.CMaxTable', 'nn.Module')

function CMaxTable:__init()
   nn.Module.__init(self)
   self.gradInput = {}
end

function CMaxTable:compute(input)
   local largest = input[1]
   for i = 2, #input do largest = torch.cmax(largest, input[i]) end
   return largest
end
