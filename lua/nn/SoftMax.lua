-- SoftMax: exp(x) / sum(exp(x)).

local softdim = require 'nn.softdim'
local softmax = require('relume.core').op.softmax
local SoftMax = torch.class('nn.SoftMax', 'nn.Module')

-- (planes), (batch, planes), (planes, height, width) or (batch, planes, height, width), along planes.
function SoftMax:compute(input)
   return softmax(input, softdim(input))
end
