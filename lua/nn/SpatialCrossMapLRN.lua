-- SpatialCrossMapLRN (Krizhevsky et al., 2012): planes divided by a power of the squares of their neighbours
-- (x -> x / (k + alpha / size * sum of x^2 over size planes)^beta).

local conv = require 'nn.conv'
local op = require('relume.core').op
local SpatialCrossMapLRN = torch.class('nn.SpatialCrossMapLRN', 'nn.Module')

--- size planes (odd in the paper), alpha (0.0001), beta (0.75), k (1).
function SpatialCrossMapLRN:__init(size, alpha, beta, k)
   nn.Module.__init(self)
   self.size = size
   self.alpha = alpha or 0.0001
   self.beta = beta or 0.75
   self.k = k or 1
end

function SpatialCrossMapLRN:compute(input)
   local x, single = conv.batch(input, 3)
   local before = math.floor((self.size - 1) / 2)
   local squares = op.pad(op.square(x), {0, before, 0, 0}, {0, self.size - 1 - before, 0, 0}, 0)
   local sums = op.sum(op.unfold(squares, 1, self.size, 1), {4}, false)
   local scale = op.pow(op.add(op.mul(sums, self.alpha / self.size), self.k), -self.beta)
   return conv.unbatch(op.mul(x, scale), single)
end

function SpatialCrossMapLRN:__tostring__()
   return ('%s(%d, %g, %g, %g)'):format(torch.type(self), self.size, self.alpha, self.beta, self.k)
end
