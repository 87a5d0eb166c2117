-- CSubTable: the first tensor of a table minus the second.

local CSubTable = torch.class('nn.CSubTable', 'nn.Module')

function CSubTable:__init()
   nn.Module.__init(self)
   self.gradInput = {}
end

function CSubTable:compute(input)
   return input[1] - input[2]
end
