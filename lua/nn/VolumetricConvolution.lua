-- VolumetricConvolution: 3D convolution of (planes, time, height, width), alone or in a batch.

local conv, volume = require 'nn.conv', require 'nn.volume'
local VolumetricConvolution = torch.class('nn.VolumetricConvolution', 'nn.Module')

--- Kernel kT x kW x kH, strides (1), zero padding (0). weight is (nOutputPlane, nInputPlane, kT, kH, kW).
function VolumetricConvolution:__init(nInputPlane, nOutputPlane, kT, kW, kH, dT, dW, dH, padT, padW, padH)
   nn.Module.__init(self)
   self.nInputPlane, self.nOutputPlane = nInputPlane, nOutputPlane
   volume.sizes(self, 1, kT, kW, kH, dT, dW, dH, padT, padW, padH)
   self.weight = torch.Tensor(nOutputPlane, nInputPlane, kT, kH, kW)
   self.gradWeight = torch.Tensor(nOutputPlane, nInputPlane, kT, kH, kW):zero()
   self.bias, self.gradBias = torch.Tensor(nOutputPlane), torch.Tensor(nOutputPlane):zero()
   self:reset()
end

VolumetricConvolution.noBias = conv.noBias

function VolumetricConvolution:reset(stdv)
   return conv.reset(self, self.kT * self.kW * self.kH * self.nInputPlane, stdv)
end

function VolumetricConvolution:compute(input, weight, bias)
   local x, single = conv.batch(input, 4)
   if weight:dim() == 2 then weight = weight:view(self.nOutputPlane, self.nInputPlane, self.kT, self.kH, self.kW) end
   return conv.unbatch(volume.conv(x, weight, bias, {self.dT, self.dH, self.dW}, {self.padT, self.padH, self.padW},
      {self.dilationT or 1, self.dilationH or 1, self.dilationW or 1}), single)
end

function VolumetricConvolution:__tostring__()
   local s = ('%s(%d -> %d, %dx%dx%d'):format(torch.type(self), self.nInputPlane, self.nOutputPlane, self.kT, self.kW, self.kH)
   local padded = self.padT ~= 0 or self.padW ~= 0 or self.padH ~= 0
   if self.dT ~= 1 or self.dW ~= 1 or self.dH ~= 1 or padded then s = s .. (', %d,%d,%d'):format(self.dT, self.dW, self.dH) end
   if padded then s = s .. (', %d,%d,%d'):format(self.padT, self.padW, self.padH) end
   return s .. ')'
end
