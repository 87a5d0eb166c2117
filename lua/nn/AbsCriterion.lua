-- AbsCriterion: absolute differences.

local l1_loss = require('relume.core').op.l1_loss
local AbsCriterion = torch.class('nn.AbsCriterion', 'nn.Criterion')

--- sizeAverage (true): mean over all elements, else the sum.
function AbsCriterion:__init(sizeAverage)
   nn.Criterion.__init(self)
   if sizeAverage ~= nil then
      self.sizeAverage = sizeAverage
   else
      self.sizeAverage = true
   end
end

function AbsCriterion:compute(input, target)
   return l1_loss(input, target, self.sizeAverage)
end
