-- SoftMarginCriterion: log(1 + exp(-y x)), y = 1 or -1.

local op = require('relume.core').op
local SoftMarginCriterion = torch.class('nn.SoftMarginCriterion', 'nn.Criterion')

function SoftMarginCriterion:__init()
   nn.Criterion.__init(self)
   self.sizeAverage = true
end

function SoftMarginCriterion:compute(input, target)
   local sum = op.sum(op.softplus(torch.cmul(input, -target)), {})
   return self.sizeAverage and sum / input:nElement() or sum
end
