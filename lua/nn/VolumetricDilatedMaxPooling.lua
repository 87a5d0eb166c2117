-- VolumetricDilatedMaxPooling: largest value in windows whose elements lie apart.

local VolumetricDilatedMaxPooling = torch.class('nn.VolumetricDilatedMaxPooling', 'nn.VolumetricMaxPooling')

--- As VolumetricMaxPooling, then the distances dilationT, dilationW, dilationH (1).
function VolumetricDilatedMaxPooling:__init(kT, kW, kH, dT, dW, dH, padT, padW, padH, dilationT, dilationW, dilationH)
   nn.VolumetricMaxPooling.__init(self, kT, kW, kH, dT, dW, dH, padT, padW, padH)
   self.dilationT, self.dilationW, self.dilationH = dilationT or 1, dilationW or 1, dilationH or 1
end
