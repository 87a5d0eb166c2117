-- HingeEmbeddingCriterion: x where y = 1, max(0, margin - x) where y = -1 (distances, labels -> loss).

local op = require('relume.core').op
local HingeEmbeddingCriterion = torch.class('nn.HingeEmbeddingCriterion', 'nn.Criterion')

function HingeEmbeddingCriterion:__init(margin)
   nn.Criterion.__init(self)
   self.margin = margin or 1
   self.sizeAverage = true
end

function HingeEmbeddingCriterion:compute(input, target)
   if type(target) == 'number' then target = input.new(input:size()):fill(target) end
   local l = op.where(op.eq(target, 1), input, op.relu(self.margin - input))
   local sum = op.sum(l, {})
   return self.sizeAverage and sum / input:nElement() or sum
end
