-- DistKLDivCriterion: Kullback-Leibler divergence of log-probabilities (input) from probabilities (target).

local kl_loss = require('relume.core').op.kl_loss
local DistKLDivCriterion = torch.class('nn.DistKLDivCriterion', 'nn.Criterion')

--- sizeAverage (true): mean over all elements, else the sum.
function DistKLDivCriterion:__init(sizeAverage)
   nn.Criterion.__init(self)
   if sizeAverage ~= nil then
      self.sizeAverage = sizeAverage
   else
      self.sizeAverage = true
   end
end

function DistKLDivCriterion:compute(input, target)
   return kl_loss(input, target, self.sizeAverage)
end
