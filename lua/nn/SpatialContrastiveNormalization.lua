-- SpatialContrastiveNormalization (Jarrett et al., 2009): the subtractive, then the divisive normalisation.

local localmean = require 'nn.localmean'
local SpatialContrastiveNormalization = torch.class('nn.SpatialContrastiveNormalization', 'nn.Module')

--- Arguments as those of the two; `normalizer` holds them.
function SpatialContrastiveNormalization:__init(nInputPlane, kernel, threshold, thresval)
   nn.Module.__init(self)
   self.nInputPlane = nInputPlane or 1
   self.kernel = localmean.kernel(kernel, 'SpatialContrastiveNormalization')
   self.threshold = threshold or 1e-4
   self.thresval = thresval or threshold or 1e-4
   self.normalizer = nn.Sequential()
      :add(nn.SpatialSubtractiveNormalization(self.nInputPlane, self.kernel))
      :add(nn.SpatialDivisiveNormalization(self.nInputPlane, self.kernel, self.threshold, self.thresval))
end

function SpatialContrastiveNormalization:compute(input)
   local normalizer = self.normalizer
   return normalizer:get(2):compute(normalizer:get(1):compute(input))
end

SpatialContrastiveNormalization.__tostring__ = nn.SpatialSubtractiveNormalization.__tostring__
