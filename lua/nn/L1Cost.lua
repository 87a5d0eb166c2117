-- L1Cost: the sum of absolute values.

local op = require('relume.core').op
local L1Cost = torch.class('nn.L1Cost', 'nn.Criterion')

function L1Cost:compute(input)
   return op.sum(torch.abs(input), {})
end
