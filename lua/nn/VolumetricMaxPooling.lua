-- VolumetricMaxPooling: largest value in each window of (planes, time, height, width), alone or in a batch.

local conv, volume = require 'nn.conv', require 'nn.volume'
local VolumetricMaxPooling = torch.class('nn.VolumetricMaxPooling', 'nn.Module')

--- Windows kT x kW x kH, strides (the window's size), padding (0).
function VolumetricMaxPooling:__init(kT, kW, kH, dT, dW, dH, padT, padW, padH)
   nn.Module.__init(self)
   volume.sizes(self, nil, kT, kW, kH, dT, dW, dH, padT, padW or 0, padH or 0)
   self.ceil_mode = false
   self.indices = torch.LongTensor()
end

--- Output sizes are rounded up.
function VolumetricMaxPooling:ceil()
   self.ceil_mode = true
   return self
end

--- Output sizes are rounded down.
function VolumetricMaxPooling:floor()
   self.ceil_mode = false
   return self
end

function VolumetricMaxPooling:compute(input)
   local x, single = conv.batch(input, 4)
   local y, inPlane, inTime = volume.maxPool(x, {self.kT, self.kH, self.kW}, {self.dT, self.dH, self.dW},
      {self.padT or 0, self.padH or 0, self.padW or 0}, {self.dilationT or 1, self.dilationH or 1, self.dilationW or 1},
      self.ceil_mode or false)
   if self.keepIndices then
      self.planeIndices, self.timeIndices = inPlane, inTime
      self.itime, self.iheight, self.iwidth = x:size(3), x:size(4), x:size(5)
   end
   return conv.unbatch(y, single)
end

-- Indices stay integers.
function VolumetricMaxPooling:type(type, tensorCache)
   local indices, inPlane, inTime = self.indices, self.planeIndices, self.timeIndices
   self.indices, self.planeIndices, self.timeIndices = nil, nil, nil
   local result = nn.Module.type(self, type, tensorCache)
   self.indices, self.planeIndices, self.timeIndices = indices, inPlane, inTime
   return result
end

function VolumetricMaxPooling:clearState()
   if self.indices then self.indices:set() end
   self.planeIndices, self.timeIndices = nil, nil
   return nn.Module.clearState(self)
end

function VolumetricMaxPooling:__tostring__()
   local s = ('%s(%dx%dx%d, %d,%d,%d'):format(torch.type(self), self.kT, self.kW, self.kH, self.dT, self.dW, self.dH)
   if (self.padT or 0) ~= 0 or (self.padW or 0) ~= 0 or (self.padH or 0) ~= 0 then
      s = s .. (', %d,%d,%d'):format(self.padT, self.padW, self.padH)
   end
   return s .. ')'
end
