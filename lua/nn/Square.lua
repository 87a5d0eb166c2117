-- Square: the square.

local Square = torch.class('nn.Square', 'nn.Module')

function Square:compute(input)
   return torch.cmul(input, input)
end
