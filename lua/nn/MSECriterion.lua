-- MSECriterion: squared differences.

local mse_loss = require('relume.core').op.mse_loss
local MSECriterion = torch.class('nn.MSECriterion', 'nn.Criterion')

--- sizeAverage (true): mean over all elements, else the sum.
function MSECriterion:__init(sizeAverage)
   nn.Criterion.__init(self)
   if sizeAverage ~= nil then
      self.sizeAverage = sizeAverage
   else
      self.sizeAverage = true
   end
end

function MSECriterion:compute(input, target)
   return mse_loss(input, target, self.sizeAverage)
end
