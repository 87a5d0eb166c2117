-- SoftSign: x / (1 + |x|).

local softsign = require('relume.core').op.softsign
local SoftSign = torch.class('nn.SoftSign', 'nn.Module')

function SoftSign:compute(input)
   return softsign(input)
end
