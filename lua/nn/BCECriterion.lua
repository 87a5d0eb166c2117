-- BCECriterion: binary cross-entropy of probabilities; eps keeps logarithms finite.

local bce_loss = require('relume.core').op.bce_loss
local BCECriterion = torch.class('nn.BCECriterion', 'nn.Criterion')

local eps = 1e-12

--- weights: a factor for each column (or element); sizeAverage (true): mean over all elements, else the sum.
function BCECriterion:__init(weights, sizeAverage)
   nn.Criterion.__init(self)
   if sizeAverage ~= nil then
      self.sizeAverage = sizeAverage
   else
      self.sizeAverage = true
   end
   if weights ~= nil then
      assert(weights:dim() == 1, 'weights input should be 1-D Tensor')
      self.weights = weights
   end
end

function BCECriterion:__len()
   return self.weights and #self.weights or 0
end

function BCECriterion:compute(input, target)
   assert(input:nElement() == target:nElement(), 'input and target size mismatch')
   if target:dim() ~= input:dim() then target = target:viewAs(input) end
   return bce_loss(input, target, self.weights, self.sizeAverage, eps)
end
