-- SoftMin: exp(-x) / sum(exp(-x)).

local softdim = require 'nn.softdim'
local softmax = require('relume.core').op.softmax
local SoftMin = torch.class('nn.SoftMin', 'nn.Module')

-- (planes), (batch, planes), (planes, height, width) or (batch, planes, height, width), along planes.
function SoftMin:compute(input)
   return softmax(-input, softdim(input))
end
