-- MarginRankingCriterion: max(0, margin - y (x1 - x2)), y = 1 or -1 ({x1, x2}, y -> loss).

local op = require('relume.core').op
local MarginRankingCriterion = torch.class('nn.MarginRankingCriterion', 'nn.Criterion')

function MarginRankingCriterion:__init(margin)
   nn.Criterion.__init(self)
   self.margin = margin or 0
   self.gradInput = {torch.Tensor(1), torch.Tensor(1)}
   self.sizeAverage = true
end

function MarginRankingCriterion:compute(input, y)
   local d = input[1] - input[2]
   if type(y) ~= 'number' and y:dim() ~= d:dim() then y = y:viewAs(d) end
   local sum = op.sum(op.relu(self.margin - op.mul(d, y)), {})
   return self.sizeAverage and sum / d:nElement() or sum
end
