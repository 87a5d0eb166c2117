-- SpatialLPPooling: p-norm of each window of (planes, height, width), alone or in a batch.

local SpatialLPPooling = torch.class('nn.SpatialLPPooling', 'nn.Sequential')

--- pnorm; windows kW x kH, strides (the window's size).
function SpatialLPPooling:__init(_, pnorm, kW, kH, dW, dH)
   nn.Sequential.__init(self)
   dW, dH = dW or kW, dH or kH
   self.kW, self.kH, self.dW, self.dH = kW, kH, dW, dH
   self:add(pnorm == 2 and nn.Square() or nn.Power(pnorm))
   self:add(nn.SpatialAveragePooling(kW, kH, dW, dH))
   self:add(nn.MulConstant(kW * kH))
   self:add(pnorm == 2 and nn.Sqrt() or nn.Power(1 / pnorm))
end
