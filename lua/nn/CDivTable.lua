-- CDivTable: the first tensor of a table divided by the second.

local CDivTable = torch.class('nn.CDivTable', 'nn.Module')

function CDivTable:__init()
   nn.Module.__init(self)
   self.gradInput = {}
end

function CDivTable:compute(input)
   return torch.cdiv(input[1], input[2])
end
