-- CosineEmbeddingCriterion: 1 - cos(x1, x2) where y = 1, max(0, cos - margin) where y = -1 ({x1, x2}, y -> loss).

local op = require('relume.core').op
local CosineEmbeddingCriterion = torch.class('nn.CosineEmbeddingCriterion', 'nn.Criterion')

function CosineEmbeddingCriterion:__init(margin)
   nn.Criterion.__init(self)
   self.margin = margin or 0
   self.gradInput = {torch.Tensor(), torch.Tensor()}
   self.sizeAverage = true
end

function CosineEmbeddingCriterion:compute(input, y)
   local cos = nn.CosineDistance.compute(self, input)
   if type(y) == 'number' then y = cos.new(cos:size()):fill(y) end
   local l = op.where(op.eq(y:view(cos:size(1)), 1), 1 - cos, op.relu(cos - self.margin))
   local sum = op.sum(l, {})
   return self.sizeAverage and sum / cos:size(1) or sum
end
