-- HardShrink: x where |x| > lambda, else 0.

local hardshrink = require('relume.core').op.hardshrink
local HardShrink = torch.class('nn.HardShrink', 'nn.Module')

--- lambda (0.5).
function HardShrink:__init(lam)
   nn.Module.__init(self)
   self.lambda = lam or 0.5
end

function HardShrink:compute(input)
   return hardshrink(input, self.lambda)
end
