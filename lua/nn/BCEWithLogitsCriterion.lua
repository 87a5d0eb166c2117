-- BCEWithLogitsCriterion: binary cross-entropy of logits, exact for large ones.

local bce_logits_loss = require('relume.core').op.bce_logits_loss
local BCEWithLogitsCriterion = torch.class('nn.BCEWithLogitsCriterion', 'nn.Criterion')

--- weights: a factor for each column (or element); sizeAverage (true): mean over all elements, else the sum.
function BCEWithLogitsCriterion:__init(weights, sizeAverage)
   nn.Criterion.__init(self)
   self.sizeAverage = sizeAverage == nil or sizeAverage
   self.weights = weights
end

function BCEWithLogitsCriterion:compute(input, target)
   return bce_logits_loss(input, target, self.weights, self.sizeAverage)
end
