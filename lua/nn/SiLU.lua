-- SiLU: x / (1 + exp(-x)) (Elfwing et al., 2017).

local silu = require('relume.core').op.silu
local SiLU = torch.class('nn.SiLU', 'nn.Module')

function SiLU:compute(input)
   return silu(input)
end
