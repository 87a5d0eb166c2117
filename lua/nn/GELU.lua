-- GELU: x Phi(x), Phi the normal distribution function (Hendrycks and Gimpel, 2016).

local gelu = require('relume.core').op.gelu
local GELU = torch.class('nn.GELU', 'nn.Module')

function GELU:compute(input)
   return gelu(input)
end
