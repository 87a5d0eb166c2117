-- SpatialSubtractiveNormalization (Jarrett et al., 2009): subtracts the weighted mean of each place's neighbourhood over all planes.

local conv, localmean = require 'nn.conv', require 'nn.localmean'
local op = require('relume.core').op
local SpatialSubtractiveNormalization = torch.class('nn.SpatialSubtractiveNormalization', 'nn.Module')

--- nInputPlane (1); kernel: weights, 1D or 2D of odd sizes (9 x 9 of ones).
function SpatialSubtractiveNormalization:__init(nInputPlane, kernel)
   nn.Module.__init(self)
   self.nInputPlane = nInputPlane or 1
   self.kernel = localmean.kernel(kernel, 'SpatialSubtractiveNormalization')
end

function SpatialSubtractiveNormalization:compute(input)
   local x, single = conv.batch(input, 3)
   return conv.unbatch(op.sub(x, localmean.ratio(x, self.kernel)), single)
end

function SpatialSubtractiveNormalization:__tostring__()
   return ('%s(%d)'):format(torch.type(self), self.nInputPlane)
end
