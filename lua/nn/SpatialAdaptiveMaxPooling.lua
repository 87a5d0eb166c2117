-- SpatialAdaptiveMaxPooling: largest value of windows that divide the image into W x H.

local conv, regions = require 'nn.conv', require 'nn.regions'
local SpatialAdaptiveMaxPooling = torch.class('nn.SpatialAdaptiveMaxPooling', 'nn.Module')

function SpatialAdaptiveMaxPooling:__init(W, H)
   nn.Module.__init(self)
   self.W, self.H = W, H
end

function SpatialAdaptiveMaxPooling:compute(input)
   local x, single = conv.batch(input, 3)
   return conv.unbatch(regions.max(x, {regions.even(x:size(3), self.H), regions.even(x:size(4), self.W)}), single)
end

function SpatialAdaptiveMaxPooling:__tostring__()
   return ('%s(%dx%d)'):format(torch.type(self), self.W, self.H)
end
