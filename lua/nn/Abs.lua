-- Abs: the absolute value.

local Abs = torch.class('nn.Abs', 'nn.Module')

function Abs:compute(input)
   return torch.abs(input)
end
