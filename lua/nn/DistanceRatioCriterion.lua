-- DistanceRatioCriterion (https://arxiv.org/abs/1610.00243): -log(exp(-x) / (exp(-x) + exp(-y))) of distances to a like and an unlike sample.

local op = require('relume.core').op
local DistanceRatioCriterion = torch.class('nn.DistanceRatioCriterion', 'nn.Criterion')

--- sizeAverage (true): mean over the samples, else the sum. The input is {x, y}.
function DistanceRatioCriterion:__init(sizeAverage)
   nn.Criterion.__init(self)
   self.sizeAverage = sizeAverage == nil or sizeAverage
end

function DistanceRatioCriterion:compute(input)
   local x, y = input[1], input[2]
   assert(#input == 2, 'Invalid number of inputs')
   assert(x:nElement() == y:nElement(), "Number of distances don't match.")
   local sum = op.sum(op.softplus(op.sub(x, y)), {}, false)
   return self.sizeAverage and sum / x:size(1) or sum
end
