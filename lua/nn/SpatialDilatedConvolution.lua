-- SpatialDilatedConvolution: 2D convolution with gaps between the kernel's taps.

local conv = require 'nn.conv'
local SpatialDilatedConvolution = torch.class('nn.SpatialDilatedConvolution', 'nn.SpatialConvolution')

--- See nn.SpatialConvolution; dilationW, dilationH (1): distances between taps.
function SpatialDilatedConvolution:__init(nInputPlane, nOutputPlane, kW, kH, dW, dH, padW, padH, dilationW, dilationH)
   nn.SpatialConvolution.__init(self, nInputPlane, nOutputPlane, kW, kH, dW, dH, padW, padH)
   self.dilationW = dilationW or 1
   self.dilationH = dilationH or 1
end

function SpatialDilatedConvolution:__tostring__()
   return conv.tostring(self, (', %d,%d'):format(self.dilationW, self.dilationH))
end
