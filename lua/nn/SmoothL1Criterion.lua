-- SmoothL1Criterion: half squared differences below 1, absolute ones less a half above (Huber).

local smooth_l1_loss = require('relume.core').op.smooth_l1_loss
local SmoothL1Criterion = torch.class('nn.SmoothL1Criterion', 'nn.Criterion')

--- sizeAverage (true): mean over all elements, else the sum.
function SmoothL1Criterion:__init(sizeAverage)
   nn.Criterion.__init(self)
   if sizeAverage ~= nil then
      self.sizeAverage = sizeAverage
   else
      self.sizeAverage = true
   end
end

function SmoothL1Criterion:compute(input, target)
   return smooth_l1_loss(input, target, self.sizeAverage)
end
