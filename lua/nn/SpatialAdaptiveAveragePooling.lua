-- SpatialAdaptiveAveragePooling: mean pooling to a fixed output size, whatever the input's.

local conv = require 'nn.conv'
local adaptive_avg_pool2d = require('relume.core').op.adaptive_avg_pool2d
local SpatialAdaptiveAveragePooling = torch.class('nn.SpatialAdaptiveAveragePooling', 'nn.Module')

--- The output's width and height. Window i covers floor(i n / H) to ceil((i + 1) n / H).
function SpatialAdaptiveAveragePooling:__init(W, H)
   nn.Module.__init(self)
   self.W = W
   self.H = H
end

function SpatialAdaptiveAveragePooling:compute(input)
   local x, single = conv.batch(input, 3)
   return conv.unbatch(adaptive_avg_pool2d(x, {self.H, self.W}), single)
end
