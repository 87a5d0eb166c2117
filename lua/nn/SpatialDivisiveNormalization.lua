-- SpatialDivisiveNormalization (Jarrett et al., 2009): divides by the weighted root mean square of each place's neighbourhood.

local conv, localmean = require 'nn.conv', require 'nn.localmean'
local op = require('relume.core').op
local SpatialDivisiveNormalization = torch.class('nn.SpatialDivisiveNormalization', 'nn.Module')

--- nInputPlane (1); kernel: weights, 1D or 2D of odd sizes (9 x 9 of ones); divisors not above threshold (0.0001) become thresval (threshold).
function SpatialDivisiveNormalization:__init(nInputPlane, kernel, threshold, thresval)
   nn.Module.__init(self)
   self.nInputPlane = nInputPlane or 1
   self.kernel = localmean.kernel(kernel, 'SpatialDivisiveNormalization')
   self.threshold = threshold or 1e-4
   self.thresval = thresval or threshold or 1e-4
end

function SpatialDivisiveNormalization:compute(input)
   local x, single = conv.batch(input, 3)
   local deviation = op.threshold(localmean.ratio(op.square(x), self.kernel, op.sqrt), self.threshold, self.thresval)
   return conv.unbatch(op.div(x, deviation), single)
end

SpatialDivisiveNormalization.__tostring__ = nn.SpatialSubtractiveNormalization.__tostring__
