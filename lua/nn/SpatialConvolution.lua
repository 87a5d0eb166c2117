-- SpatialConvolution: 2D convolution of (planes, height, width), alone or in a batch.

local conv = require 'nn.conv'
local conv2d = require('relume.core').op.conv2d
local SpatialConvolution = torch.class('nn.SpatialConvolution', 'nn.Module')

--- Kernel kW x kH, strides dW, dH (1), zero padding padW (0), padH (padW). weight is (nOutputPlane, nInputPlane, kH, kW).
function SpatialConvolution:__init(nInputPlane, nOutputPlane, kW, kH, dW, dH, padW, padH)
   nn.Module.__init(self)
   dW, dH = dW or 1, dH or 1
   self.nInputPlane = nInputPlane
   self.nOutputPlane = nOutputPlane
   self.kW, self.kH = kW, kH
   self.dW, self.dH = dW, dH
   self.padW = padW or 0
   self.padH = padH or self.padW
   self.weight = torch.Tensor(nOutputPlane, nInputPlane, kH, kW)
   self.bias = torch.Tensor(nOutputPlane)
   self.gradWeight = torch.Tensor(nOutputPlane, nInputPlane, kH, kW):zero()
   self.gradBias = torch.Tensor(nOutputPlane):zero()
   self:reset()
end

SpatialConvolution.noBias = conv.noBias

function SpatialConvolution:reset(stdv)
   return conv.reset(self, self.kW * self.kH * self.nInputPlane, stdv)
end

-- (batch, planes, height, width) or without the batch; files of old programs hold a matrix as weight.
function SpatialConvolution:compute(input, weight, bias)
   local x, single = conv.batch(input, 3)
   if weight:dim() == 2 then weight = weight:view(self.nOutputPlane, self.nInputPlane, self.kH, self.kW) end
   local padW, padH = self.padW or 0, self.padH or 0
   local y = conv2d(x, weight, bias, {self.dH, self.dW}, {padH, padW}, {self.dilationH or 1, self.dilationW or 1}, 1)
   return conv.unbatch(y, single)
end

SpatialConvolution.__tostring__ = conv.tostring
