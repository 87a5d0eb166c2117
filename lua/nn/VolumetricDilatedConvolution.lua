-- VolumetricDilatedConvolution: 3D convolution whose kernel's elements lie apart.

local VolumetricDilatedConvolution = torch.class('nn.VolumetricDilatedConvolution', 'nn.VolumetricConvolution')

--- As VolumetricConvolution, then the distances dilationT, dilationW, dilationH (1).
function VolumetricDilatedConvolution:__init(nInputPlane, nOutputPlane, kT, kW, kH, dT, dW, dH, padT, padW, padH, dilationT, dilationW, dilationH)
   nn.VolumetricConvolution.__init(self, nInputPlane, nOutputPlane, kT, kW, kH, dT, dW, dH, padT, padW, padH)
   self.dilationT, self.dilationW, self.dilationH = dilationT or 1, dilationW or 1, dilationH or 1
end
