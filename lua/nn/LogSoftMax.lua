-- LogSoftMax: log(exp(x) / sum(exp(x))).

local softdim = require 'nn.softdim'
local log_softmax = require('relume.core').op.log_softmax
local LogSoftMax = torch.class('nn.LogSoftMax', 'nn.Module')

-- (planes), (batch, planes), (planes, height, width) or (batch, planes, height, width), along planes.
function LogSoftMax:compute(input)
   return log_softmax(input, softdim(input))
end
