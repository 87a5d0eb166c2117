-- L1HingeEmbeddingCriterion: the L1 distance of a pair that is alike (y = 1), max(0, margin - distance) of one that is not (y = -1).

local op = require('relume.core').op
local L1HingeEmbeddingCriterion = torch.class('nn.L1HingeEmbeddingCriterion', 'nn.Criterion')

function L1HingeEmbeddingCriterion:__init(margin)
   nn.Criterion.__init(self)
   self.margin = margin or 1
   self.gradInput = {torch.Tensor(), torch.Tensor()}
end

function L1HingeEmbeddingCriterion:compute(input, y)
   local distance = op.l1_loss(input[1], input[2], false)
   return y == -1 and op.relu(op.sub(self.margin, distance)) or distance
end
