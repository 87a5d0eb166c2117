-- SpatialDepthWiseConvolution: each input plane convolved alone, nOutputPlane times (planes -> planes * nOutputPlane).

local conv = require 'nn.conv'
local op = require('relume.core').op
local SpatialDepthWiseConvolution = torch.class('nn.SpatialDepthWiseConvolution', 'nn.Module')

--- nOutputPlane outputs for each of nInputPlane; kernel kW x kH, strides (1), zero padding (0). weight is (nOutputPlane, nInputPlane, kH, kW).
function SpatialDepthWiseConvolution:__init(nInputPlane, nOutputPlane, kW, kH, dW, dH, padW, padH)
   nn.Module.__init(self)
   self.nInputPlane, self.nOutputPlane = nInputPlane, nOutputPlane
   self.kW, self.kH, self.dW, self.dH = kW, kH, dW or 1, dH or 1
   self.padW = padW or 0
   self.padH = padH or self.padW
   self.weight = torch.Tensor(nOutputPlane, nInputPlane, kH, kW)
   self.gradWeight = self.weight:clone():zero()
   self.bias = torch.Tensor(nOutputPlane, nInputPlane)
   self.gradBias = self.bias:clone():zero()
   self:reset()
end

SpatialDepthWiseConvolution.noBias = conv.noBias

function SpatialDepthWiseConvolution:reset(stdv)
   return conv.reset(self, self.kW * self.kH * self.nInputPlane, stdv)
end

-- The nOutputPlane results of a plane lie together.
function SpatialDepthWiseConvolution:compute(input, weight, bias)
   local x, single = conv.batch(input, 3)
   local m, n = self.nOutputPlane, self.nInputPlane
   local w = op.transpose(weight:view(m, n, self.kH * self.kW), 0, 1):contiguous():view(n * m, 1, self.kH, self.kW)
   local b = bias and op.transpose(bias, 0, 1):contiguous():view(n * m)
   return conv.unbatch(op.conv2d(x, w, b, {self.dH, self.dW}, {self.padH, self.padW}, {1, 1}, n), single)
end

SpatialDepthWiseConvolution.__tostring__ = conv.tostring
