-- SpatialAveragePooling: mean of each window of (planes, height, width), alone or in a batch.

local conv = require 'nn.conv'
local avg_pool2d = require('relume.core').op.avg_pool2d
local SpatialAveragePooling = torch.class('nn.SpatialAveragePooling', 'nn.Module')

--- Windows kW x kH, strides dW, dH (1), padding padW, padH (0), which counts in the mean unless setCountExcludePad was called.
function SpatialAveragePooling:__init(kW, kH, dW, dH, padW, padH)
   nn.Module.__init(self)
   self.kW, self.kH = kW, kH
   self.dW, self.dH = dW or 1, dH or 1
   self.padW, self.padH = padW or 0, padH or 0
   self.ceil_mode = false
   self.count_include_pad = true
   self.divide = true
end

--- Output sizes are rounded up.
function SpatialAveragePooling:ceil()
   self.ceil_mode = true
   return self
end

--- Output sizes are rounded down.
function SpatialAveragePooling:floor()
   self.ceil_mode = false
   return self
end

--- Means are over kW * kH values, padding included.
function SpatialAveragePooling:setCountIncludePad()
   self.count_include_pad = true
   return self
end

--- Means are over the values inside the image.
function SpatialAveragePooling:setCountExcludePad()
   self.count_include_pad = false
   return self
end

function SpatialAveragePooling:compute(input)
   local x, single = conv.batch(input, 3)
   local include = self.count_include_pad
   if include == nil then include = true end
   local y = avg_pool2d(x, {self.kH, self.kW}, {self.dH, self.dW}, {self.padH or 0, self.padW or 0}, self.ceil_mode or false, include)
   if self.divide == false then y = y * (self.kW * self.kH) end
   return conv.unbatch(y, single)
end

function SpatialAveragePooling:__tostring__()
   local s = ('%s(%dx%d, %d,%d'):format(torch.type(self), self.kW, self.kH, self.dW, self.dH)
   if (self.padW or 0) ~= 0 or (self.padH or 0) ~= 0 then s = s .. ', ' .. self.padW .. ',' .. self.padH end
   return s .. ')'
end
