-- LogSigmoid: log(1 / (1 + exp(-x))), exact for large |x|.

local log_sigmoid = require('relume.core').op.log_sigmoid
local LogSigmoid = torch.class('nn.LogSigmoid', 'nn.Module')

function LogSigmoid:compute(input)
   return log_sigmoid(input)
end
