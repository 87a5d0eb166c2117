-- TemporalSubSampling: sum of each window of frames times a weight a feature, plus a bias ((frames, size), alone or in a batch).

local conv = require 'nn.conv'
local op = require('relume.core').op
local TemporalSubSampling = torch.class('nn.TemporalSubSampling', 'nn.Module')

--- Windows of kW frames every dW (1).
function TemporalSubSampling:__init(inputFrameSize, kW, dW)
   nn.Module.__init(self)
   self.inputFrameSize, self.kW, self.dW = inputFrameSize, kW, dW or 1
   self.weight, self.gradWeight = torch.Tensor(inputFrameSize), torch.Tensor(inputFrameSize):zero()
   self.bias, self.gradBias = torch.Tensor(inputFrameSize), torch.Tensor(inputFrameSize):zero()
   self:reset()
end

function TemporalSubSampling:reset(stdv)
   return conv.reset(self, self.kW, stdv)
end

function TemporalSubSampling:compute(input, weight, bias)
   local d = input:dim()
   local sums = op.sum(op.unfold(input, d - 2, self.kW, self.dW), {d}, false)
   return op.add(op.mul(sums, weight), bias)
end
