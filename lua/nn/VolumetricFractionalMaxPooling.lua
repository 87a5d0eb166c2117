-- VolumetricFractionalMaxPooling (Graham, 2014): as SpatialFractionalMaxPooling, over (planes, height, width, time).

local conv, regions = require 'nn.conv', require 'nn.regions'
local VolumetricFractionalMaxPooling = torch.class('nn.VolumetricFractionalMaxPooling', 'nn.Module')
local Spatial = nn.SpatialFractionalMaxPooling

VolumetricFractionalMaxPooling.lastForward = true
VolumetricFractionalMaxPooling.fixPoolingRegions, VolumetricFractionalMaxPooling.samples = Spatial.fixPoolingRegions, Spatial.samples

--- Windows poolSizeT x poolSizeW x poolSizeH. arg1, arg2, arg3: output time, width, height (from 1) or ratios (below 1).
function VolumetricFractionalMaxPooling:__init(poolSizeT, poolSizeW, poolSizeH, arg1, arg2, arg3)
   nn.Module.__init(self)
   assert(poolSizeT >= 2 and poolSizeW >= 2 and poolSizeH >= 2, '[VolumetricFractionalMaxPooling] window; need at least 2 x 2 x 2')
   self.poolSizeT, self.poolSizeW, self.poolSizeH = poolSizeT, poolSizeW, poolSizeH
   if arg1 >= 1 and arg2 >= 1 and arg3 >= 1 then
      self.outT, self.outW, self.outH = arg1, arg2, arg3
   elseif arg1 < 1 and arg2 < 1 and arg3 < 1 and arg1 > 0 and arg2 > 0 and arg3 > 0 then
      self.ratioT, self.ratioW, self.ratioH = arg1, arg2, arg3
   else
      error '[VolumetricFractionalMaxPooling] sizes; need three whole numbers or three ratios below 1'
   end
   self.newRandomPool = true
end

function VolumetricFractionalMaxPooling:compute(input)
   local x, single = conv.batch(input, 4)
   local r, axis = self:samples(x), Spatial.axis
   return conv.unbatch(regions.max(x, {axis(x, 3, self.outH, self.ratioH, self.poolSizeH, r, 3),
      axis(x, 4, self.outW, self.ratioW, self.poolSizeW, r, 2), axis(x, 5, self.outT, self.ratioT, self.poolSizeT, r, 1)}), single)
end
