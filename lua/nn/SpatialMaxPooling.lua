-- SpatialMaxPooling: largest value in each window of (planes, height, width), alone or in a batch.

local conv = require 'nn.conv'
local max_pool2d = require('relume.core').op.max_pool2d
local SpatialMaxPooling = torch.class('nn.SpatialMaxPooling', 'nn.Module')

--- Windows kW x kH, strides dW (kW), dH (kH), padding padW, padH (0).
function SpatialMaxPooling:__init(kW, kH, dW, dH, padW, padH)
   nn.Module.__init(self)
   self.kW, self.kH = kW, kH
   self.dW, self.dH = dW or kW, dH or kH
   self.padW, self.padH = padW or 0, padH or 0
   self.ceil_mode = false
   self.indices = torch.LongTensor()
end

--- Output sizes are rounded up.
function SpatialMaxPooling:ceil()
   self.ceil_mode = true
   return self
end

--- Output sizes are rounded down.
function SpatialMaxPooling:floor()
   self.ceil_mode = false
   return self
end

function SpatialMaxPooling:compute(input)
   local x, single = conv.batch(input, 3)
   local y, positions = max_pool2d(x, {self.kH, self.kW}, {self.dH, self.dW}, {self.padH or 0, self.padW or 0},
      {self.dilationH or 1, self.dilationW or 1}, self.ceil_mode or false)
   if self.keepIndices then -- a SpatialMaxUnpooling reads them
      self.indices = positions + 1
      self.iheight, self.iwidth = x:size(3), x:size(4)
   end
   return conv.unbatch(y, single)
end

-- Indices stay integers.
function SpatialMaxPooling:type(type, tensorCache)
   local indices = self.indices
   self.indices = nil
   local result = nn.Module.type(self, type, tensorCache)
   self.indices = indices
   return result
end

function SpatialMaxPooling:clearState()
   if self.indices then self.indices:set() end
   return nn.Module.clearState(self)
end

function SpatialMaxPooling:__tostring__()
   local s = ('%s(%dx%d, %d,%d'):format(torch.type(self), self.kW, self.kH, self.dW, self.dH)
   if (self.padW or 0) ~= 0 or (self.padH or 0) ~= 0 then s = s .. ', ' .. self.padW .. ',' .. self.padH end
   return s .. ')'
end
