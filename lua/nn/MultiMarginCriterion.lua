-- MultiMarginCriterion: mean over wrong classes of max(0, margin - x[y] + x[i])^p (scores, class numbers -> loss).

local op = require('relume.core').op
local MultiMarginCriterion = torch.class('nn.MultiMarginCriterion', 'nn.Criterion')

--- p: 1 or 2; weights: a factor for each right class; margin (1).
function MultiMarginCriterion:__init(p, weights, margin)
   assert(p == nil or p == 1 or p == 2, 'only p=1 and p=2 supported')
   self.p = p or 1
   self.margin = margin or 1.0
   nn.Criterion.__init(self)
   self.sizeAverage = true
   if weights then
      assert(weights:dim() == 1, 'weights input should be 1-D Tensor')
      self.weights = weights
   end
end

function MultiMarginCriterion:compute(input, target)
   local x = input:dim() == 1 and input:view(1, input:size(1)) or input
   local y = type(target) == 'number' and torch.LongTensor {target} or require('relume.core').op.cast(target, 'Long')
   local n, c = x:size(1), x:size(2)
   y = y:contiguous():view(n, 1)
   local right = x:gather(2, y)
   local d = op.relu(op.sub(op.add(x, self.margin), right))
   if self.p == 2 then d = torch.cmul(d, d) end
   if self.weights then d = op.mul(d, self.weights:index(1, y:view(n)):view(n, 1)) end
   local wrong = x.new(n, c):fill(1):scatter(2, y, 0)
   local sum = op.sum(torch.cmul(d, wrong), {}) / c
   return self.sizeAverage and sum / n or sum
end
