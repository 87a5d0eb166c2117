-- SpatialConvolutionLocal: a 2D convolution with a kernel of its own at each place (planes, height, width), alone or in a batch.

local conv = require 'nn.conv'
local op = require('relume.core').op
local SpatialConvolutionLocal = torch.class('nn.SpatialConvolutionLocal', 'nn.Module')

--- Images iW x iH; kernel kW x kH, strides (1), zero padding (0). weight is (oH, oW, nOutputPlane, nInputPlane, kH, kW), bias
-- (nOutputPlane, oH, oW).
function SpatialConvolutionLocal:__init(nInputPlane, nOutputPlane, iW, iH, kW, kH, dW, dH, padW, padH)
   nn.Module.__init(self)
   self.nInputPlane, self.nOutputPlane = nInputPlane, nOutputPlane
   self.iW, self.iH, self.kW, self.kH = iW, iH, kW, kH
   self.dW, self.dH = dW or 1, dH or 1
   self.padW = padW or 0
   self.padH = padH or self.padW
   self.oW = math.floor((self.padW * 2 + iW - kW) / self.dW) + 1
   self.oH = math.floor((self.padH * 2 + iH - kH) / self.dH) + 1
   if self.oW < 1 or self.oH < 1 then error '[SpatialConvolutionLocal] kernel; got a larger one than the padded image' end
   self.weight = torch.Tensor(self.oH, self.oW, nOutputPlane, nInputPlane, kH, kW)
   self.gradWeight = self.weight:clone():zero()
   self.bias = torch.Tensor(nOutputPlane, self.oH, self.oW)
   self.gradBias = self.bias:clone():zero()
   self:reset()
end

SpatialConvolutionLocal.noBias = conv.noBias

function SpatialConvolutionLocal:reset(stdv)
   return conv.reset(self, self.kW * self.kH * self.nInputPlane, stdv)
end

function SpatialConvolutionLocal:compute(input, weight, bias)
   local x, single = conv.batch(input, 3)
   if x:size(2) ~= self.nInputPlane or x:size(3) ~= self.iH or x:size(4) ~= self.iW then
      error(('[SpatialConvolutionLocal] input; got %s, need (%dx%dx%d)'):format(table.concat(input:size():totable(), 'x'),
         self.nInputPlane, self.iH, self.iW), 0)
   end
   local n, places, taps = x:size(1), self.oH * self.oW, self.nInputPlane * self.kH * self.kW
   if self.padW > 0 or self.padH > 0 then x = op.pad(x, {0, 0, self.padH, self.padW}, {0, 0, self.padH, self.padW}, 0) end
   local windows = op.unfold(op.unfold(x, 2, self.kH, self.dH), 3, self.kW, self.dW) -- (n, planes, oH, oW, kH, kW)
   local patches = op.permute(windows, {2, 3, 1, 4, 5, 0}):contiguous():view(places, taps, n)
   local y = op.matmul(weight:view(places, self.nOutputPlane, taps), patches) -- (places, out, n)
   y = op.permute(y, {2, 1, 0}):contiguous():view(n, self.nOutputPlane, self.oH, self.oW)
   return conv.unbatch(bias and op.add(y, bias) or y, single)
end

SpatialConvolutionLocal.__tostring__ = conv.tostring
