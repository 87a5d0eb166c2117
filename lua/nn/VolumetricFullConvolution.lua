-- VolumetricFullConvolution: transposed 3D convolution of (planes, time, height, width), alone or in a batch.

local conv, volume = require 'nn.conv', require 'nn.volume'
local VolumetricFullConvolution = torch.class('nn.VolumetricFullConvolution', 'nn.Module')

--- Kernel kT x kW x kH, strides (1), padding (0), extra output size adjT, adjW, adjH (0). weight is (nInputPlane, nOutputPlane, kT, kH, kW).
function VolumetricFullConvolution:__init(nInputPlane, nOutputPlane, kT, kW, kH, dT, dW, dH, padT, padW, padH, adjT, adjW, adjH)
   nn.Module.__init(self)
   self.nInputPlane, self.nOutputPlane = nInputPlane, nOutputPlane
   volume.sizes(self, 1, kT, kW, kH, dT, dW, dH, padT, padW or 0, padH or 0)
   self.adjT, self.adjW, self.adjH = adjT or 0, adjW or 0, adjH or 0
   if self.adjT > self.dT - 1 or self.adjW > self.dW - 1 or self.adjH > self.dH - 1 then
      error '[VolumetricFullConvolution] adjT, adjW, adjH; need less than dT, dW, dH'
   end
   self.weight = torch.Tensor(nInputPlane, nOutputPlane, kT, kH, kW)
   self.gradWeight = torch.Tensor(nInputPlane, nOutputPlane, kT, kH, kW):zero()
   self.bias, self.gradBias = torch.Tensor(nOutputPlane), torch.Tensor(nOutputPlane):zero()
   self:reset()
end

VolumetricFullConvolution.noBias = conv.noBias

function VolumetricFullConvolution:reset(stdv)
   return conv.reset(self, self.kT * self.kW * self.kH * self.nInputPlane, stdv)
end

-- input is a tensor, or {tensor, tensor whose time, height and width the output is to have}.
function VolumetricFullConvolution:compute(input, weight, bias)
   local x, adj = input, {self.adjT or 0, self.adjH or 0, self.adjW or 0}
   if type(input) == 'table' then
      x = input[1]
      local like, d, n = input[2], input[2]:dim(), x:dim()
      for i, axis in ipairs {'T', 'H', 'W'} do
         adj[i] = conv.adjust(like:size(d - 3 + i), x:size(n - 3 + i), self['d' .. axis], self['k' .. axis], self['pad' .. axis])
      end
   end
   local single
   x, single = conv.batch(x, 4)
   return conv.unbatch(volume.convTranspose(x, weight, bias, {self.dT, self.dH, self.dW}, {self.padT, self.padH, self.padW}, adj), single)
end

VolumetricFullConvolution.__tostring__ = nn.VolumetricConvolution.__tostring__
