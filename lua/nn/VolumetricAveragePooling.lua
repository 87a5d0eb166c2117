-- VolumetricAveragePooling: mean of each window of (planes, time, height, width), alone or in a batch.

local conv, volume = require 'nn.conv', require 'nn.volume'
local VolumetricAveragePooling = torch.class('nn.VolumetricAveragePooling', 'nn.Module')

--- Windows kT x kW x kH, strides (the window's size), padding (0), which counts in the mean unless setCountExcludePad was called.
function VolumetricAveragePooling:__init(kT, kW, kH, dT, dW, dH, padT, padW, padH)
   nn.Module.__init(self)
   volume.sizes(self, nil, kT, kW, kH, dT, dW, dH, padT, padW or 0, padH or 0)
   self.ceil_mode = false
   self.count_include_pad = true
end

VolumetricAveragePooling.ceil, VolumetricAveragePooling.floor = nn.VolumetricMaxPooling.ceil, nn.VolumetricMaxPooling.floor

--- Means are over kT * kW * kH values, padding included.
function VolumetricAveragePooling:setCountIncludePad()
   self.count_include_pad = true
   return self
end

--- Means are over the values inside the volume.
function VolumetricAveragePooling:setCountExcludePad()
   self.count_include_pad = false
   return self
end

function VolumetricAveragePooling:compute(input)
   local x, single = conv.batch(input, 4)
   return conv.unbatch(volume.avgPool(x, {self.kT, self.kH, self.kW}, {self.dT, self.dH, self.dW},
      {self.padT or 0, self.padH or 0, self.padW or 0}, self.ceil_mode or false, self.count_include_pad ~= false), single)
end

VolumetricAveragePooling.__tostring__ = nn.VolumetricMaxPooling.__tostring__
