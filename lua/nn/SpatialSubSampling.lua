-- SpatialSubSampling (LeCun et al., 1998): sum of each window times a weight a plane, plus a bias a plane.

local conv = require 'nn.conv'
local op = require('relume.core').op
local SpatialSubSampling = torch.class('nn.SpatialSubSampling', 'nn.Module')

--- Windows kW x kH, strides (1).
function SpatialSubSampling:__init(nInputPlane, kW, kH, dW, dH)
   nn.Module.__init(self)
   self.nInputPlane = nInputPlane
   self.kW, self.kH, self.dW, self.dH = kW, kH, dW or 1, dH or 1
   self.weight, self.gradWeight = torch.Tensor(nInputPlane), torch.Tensor(nInputPlane):zero()
   self.bias, self.gradBias = torch.Tensor(nInputPlane), torch.Tensor(nInputPlane):zero()
   self:reset()
end

function SpatialSubSampling:reset(stdv)
   return conv.reset(self, self.kW * self.kH, stdv)
end

function SpatialSubSampling:compute(input, weight, bias)
   local x, single = conv.batch(input, 3)
   local n = self.nInputPlane
   local sums = op.mul(op.avg_pool2d(x, {self.kH, self.kW}, {self.dH, self.dW}, {0, 0}, false, true), self.kW * self.kH)
   return conv.unbatch(op.add(op.mul(sums, weight:view(1, n, 1, 1)), bias:view(1, n, 1, 1)), single)
end
