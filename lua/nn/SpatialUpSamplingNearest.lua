-- SpatialUpSamplingNearest: an image enlarged by a whole factor, pixels repeated.

local conv = require 'nn.conv'
local upsample_nearest2d = require('relume.core').op.upsample_nearest2d
local SpatialUpSamplingNearest = torch.class('nn.SpatialUpSamplingNearest', 'nn.Module')

function SpatialUpSamplingNearest:__init(scale)
   nn.Module.__init(self)
   self.scale_factor = scale
   if self.scale_factor < 1 then error 'scale_factor must be greater than 1' end
   if math.floor(self.scale_factor) ~= self.scale_factor then error 'scale_factor must be integer' end
   self.inputSize = torch.LongStorage(4)
   self.outputSize = torch.LongStorage(4)
end

function SpatialUpSamplingNearest:compute(input)
   local x, single = conv.batch(input, 3)
   return conv.unbatch(upsample_nearest2d(x, self.scale_factor), single)
end
