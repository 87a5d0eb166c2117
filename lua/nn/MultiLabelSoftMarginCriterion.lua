-- MultiLabelSoftMarginCriterion: binary cross-entropy of logits for several labels at once.

local op = require('relume.core').op
local MultiLabelSoftMarginCriterion = torch.class('nn.MultiLabelSoftMarginCriterion', 'nn.Criterion')

--- weights: a factor for each label; sizeAverage (true): mean over all elements, else the sum.
function MultiLabelSoftMarginCriterion:__init(weights, sizeAverage)
   nn.Criterion.__init(self)
   self.sizeAverage = sizeAverage == nil or sizeAverage
   self.weights = weights
end

function MultiLabelSoftMarginCriterion:compute(input, target)
   return op.bce_logits_loss(input, target, self.weights, self.sizeAverage)
end
