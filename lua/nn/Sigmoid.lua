-- Sigmoid: 1 / (1 + exp(-x)).

local Sigmoid = torch.class('nn.Sigmoid', 'nn.Module')

function Sigmoid:compute(input)
   return torch.sigmoid(input)
end
