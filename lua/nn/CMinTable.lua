-- CMinTable: the elementwise minimum of the tensors in a table.

local CMinTable = torch.class('nn.CMinTable', 'nn.Module')

function CMinTable:__init()
   nn.Module.__init(self)
   self.gradInput = {}
end

function CMinTable:compute(input)
   local smallest = input[1]
   for i = 2, #input do smallest = torch.cmin(smallest, input[i]) end
   return smallest
end
