-- Square: the square.

local square = require('relume.core').op.square
local Square = torch.class('nn.Square', 'nn.Module')

function Square:compute(input)
   return square(input)
end
