-- SpatialDilatedMaxPooling: max pooling with gaps inside the windows.

local SpatialDilatedMaxPooling = torch.class('nn.SpatialDilatedMaxPooling', 'nn.SpatialMaxPooling')

--- See nn.SpatialMaxPooling; dilationW, dilationH (1): distances between the values of a window.
function SpatialDilatedMaxPooling:__init(kW, kH, dW, dH, padW, padH, dilationW, dilationH)
   nn.SpatialMaxPooling.__init(self, kW, kH, dW, dH, padW, padH)
   self.dilationW = dilationW or 1
   self.dilationH = dilationH or 1
end

function SpatialDilatedMaxPooling:__tostring__()
   local s = ('%s(%dx%d, %d,%d'):format(torch.type(self), self.kW, self.kH, self.dW, self.dH)
   if self.padW ~= 0 or self.padH ~= 0 then s = s .. ', ' .. self.padW .. ',' .. self.padH end
   return s .. (', %d,%d)'):format(self.dilationW, self.dilationH)
end
