-- MarginCriterion: hinge loss max(0, margin - y x), y = 1 or -1.

local op = require('relume.core').op
local MarginCriterion = torch.class('nn.MarginCriterion', 'nn.Criterion')

function MarginCriterion:__init(margin)
   nn.Criterion.__init(self)
   self.margin = margin or 1
   self.sizeAverage = true
end

function MarginCriterion:compute(input, target)
   local sum = op.sum(op.relu(self.margin - torch.cmul(input, target)), {})
   return self.sizeAverage and sum / input:nElement() or sum
end
