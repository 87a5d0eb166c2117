-- Resampling: nn.SpatialReSampling (bilinear, corners kept), nn.SpatialUpSampling (to the nearest).

local conv, resample = require 'nn.conv', require 'nn.resample'
local xlua = require 'xlua'
local SpatialReSampling = torch.class('nn.SpatialReSampling', 'nn.Module')

--- {owidth =, oheight =} or the ratios {rwidth =, rheight =} of the output's sizes to the input's.
function SpatialReSampling:__init(...)
   nn.Module.__init(self)
   xlua.unpack_class(self, {...}, 'nn.SpatialReSampling', 'Bilinear resampling of images.',
      {arg = 'rwidth', type = 'number', help = 'output width / input width'}, {arg = 'rheight', type = 'number', help = 'output height / input height'},
      {arg = 'owidth', type = 'number', help = 'output width'}, {arg = 'oheight', type = 'number', help = 'output height'})
end

function SpatialReSampling:compute(input)
   local x, single = conv.batch(input, 3)
   local h, w = self.oheight or math.floor(self.rheight * x:size(3)), self.owidth or math.floor(self.rwidth * x:size(4))
   return conv.unbatch(resample.linear(resample.linear(x, 2, h), 3, w), single)
end

local SpatialUpSampling = torch.class('nn.SpatialUpSampling', 'nn.Module')

--- {dW =, dH =, yDim = 2, xDim = 3}: every pixel dW × dH times.
function SpatialUpSampling:__init(...)
   nn.Module.__init(self)
   xlua.unpack_class(self, {...}, 'nn.SpatialUpSampling', 'Images enlarged by repeated pixels.',
      {arg = 'dW', type = 'number', help = 'factor of the width', req = true}, {arg = 'dH', type = 'number', help = 'factor of the height', req = true},
      {arg = 'yDim', type = 'number', help = 'dimension of the height', default = 2},
      {arg = 'xDim', type = 'number', help = 'dimension of the width', default = 3})
end

function SpatialUpSampling:compute(input)
   return resample.nearest(resample.nearest(input, self.yDim - 1, self.dH), self.xDim - 1, self.dW)
end
