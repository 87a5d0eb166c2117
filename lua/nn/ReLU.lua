-- ReLU: max(x, 0).

local relu = require('relume.core').op.relu
local ReLU = torch.class('nn.ReLU', 'nn.Threshold')

--- p: the input may be overwritten (memory is planned by the compiler; eager ignores it).
function ReLU:__init(p)
   nn.Threshold.__init(self, 0, 0, p)
end

function ReLU:compute(input)
   return relu(input)
end
