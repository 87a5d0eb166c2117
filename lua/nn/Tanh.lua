-- Tanh: the hyperbolic tangent.

local Tanh = torch.class('nn.Tanh', 'nn.Module')

function Tanh:compute(input)
   return torch.tanh(input)
end
