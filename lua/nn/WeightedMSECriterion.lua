-- WeightedMSECriterion: squared differences from the target times a weight tensor.

local op = require('relume.core').op
local WeightedMSECriterion = torch.class('nn.WeightedMSECriterion', 'nn.MSECriterion')

function WeightedMSECriterion:__init(w)
   nn.MSECriterion.__init(self)
   self.weight = w:clone()
end

function WeightedMSECriterion:compute(input, target)
   return op.mse_loss(input, op.mul(target, self.weight), self.sizeAverage)
end
