-- Exp: the exponential.

local Exp = torch.class('nn.Exp', 'nn.Module')

function Exp:compute(input)
   return torch.exp(input)
end
