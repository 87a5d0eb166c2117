-- CrossEntropyCriterion: LogSoftMax and ClassNLLCriterion in one (scores, class numbers from 1 -> loss).

local cross_entropy = require('relume.core').op.cross_entropy
local CrossEntropyCriterion = torch.class('nn.CrossEntropyCriterion', 'nn.Criterion')
local batch = nn.ClassNLLCriterion.batch

--- See nn.ClassNLLCriterion.
function CrossEntropyCriterion:__init(weights, sizeAverage)
   nn.Criterion.__init(self)
   self.lsm = nn.LogSoftMax()
   self.nll = nn.ClassNLLCriterion(weights, sizeAverage)
end

function CrossEntropyCriterion:compute(input, target)
   local nll = self.nll
   if self.sizeAverage ~= nil and nll.sizeAverage ~= self.sizeAverage then nll.sizeAverage = self.sizeAverage end
   if input:dim() > 2 then input = torch.squeeze(input) end
   local x, y = batch(nll, input, target)
   return cross_entropy(x, y, nll.weights, nll.sizeAverage, 1, nll.ignoreIndex or -100)
end
