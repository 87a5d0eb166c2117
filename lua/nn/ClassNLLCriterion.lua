-- ClassNLLCriterion: minus the log-probability of the right class (log-probabilities, class numbers from 1 -> loss).

local nll_loss = require('relume.core').op.nll_loss
local ClassNLLCriterion = torch.class('nn.ClassNLLCriterion', 'nn.Criterion')

--- weights: a factor for each class; sizeAverage (true): divide by the batch's total weight; ignoreIndex (-100): targets that do not count.
function ClassNLLCriterion:__init(weights, sizeAverage, ignoreIndex)
   nn.Criterion.__init(self)
   self.sizeAverage = sizeAverage == nil or sizeAverage
   self.ignoreIndex = ignoreIndex or -100
   if weights then
      assert(weights:dim() == 1, 'weights input should be 1-D Tensor')
      self.weights = weights
   end
   self.output_tensor = torch.zeros(1)
   self.total_weight_tensor = torch.ones(1)
   self.target = torch.zeros(1):long()
end

function ClassNLLCriterion:__len()
   return self.weights and #self.weights or 0
end

--- Input as (batch, classes) and target as (batch): one sample is a batch of 1.
function ClassNLLCriterion.batch(self, input, target)
   local x = input
   if x:dim() == 1 then
      x = x:view(1, x:size(1))
   elseif x:dim() ~= 2 then
      error(('[ClassNLLCriterion] input; got %dD tensor, need a vector or a matrix'):format(x:dim()), 0)
   end
   if type(target) == 'number' then
      self.target = self.target:resize(1):fill(target)
      target = self.target
   elseif target:dim() ~= 1 then
      target = target:view(target:nElement())
   end
   return x, target
end

local batch = ClassNLLCriterion.batch

function ClassNLLCriterion:compute(input, target)
   local x, y = batch(self, input, target)
   return (nll_loss(x, y, self.weights, self.sizeAverage, 1, self.ignoreIndex or -100))
end
