-- SpatialClassNLLCriterion: ClassNLLCriterion for every pixel ((batch, classes, h, w), (batch, h, w) -> loss).

local nll_loss = require('relume.core').op.nll_loss
local SpatialClassNLLCriterion = torch.class('nn.SpatialClassNLLCriterion', 'nn.Criterion')

--- weights: a factor for each class; sizeAverage (true): divide by the total weight of all pixels.
function SpatialClassNLLCriterion:__init(weights, sizeAverage)
   nn.Criterion.__init(self)
   self.sizeAverage = sizeAverage == nil or sizeAverage
   if weights then
      assert(weights:dim() == 1, 'weights input should be 1-D Tensor')
      self.weights = weights
   end
   self.output_tensor = torch.zeros(1)
   self.total_weight_tensor = torch.ones(1)
   self.target = torch.zeros(1):long()
end

function SpatialClassNLLCriterion:__len()
   return self.weights and #self.weights or 0
end

function SpatialClassNLLCriterion:compute(input, target)
   local x = input:dim() == 3 and input:view(1, input:size(1), input:size(2), input:size(3)) or input
   local c = x:size(2)
   local rows = x:transpose(2, 3):transpose(3, 4):contiguous():view(x:nElement() / c, c)
   return (nll_loss(rows, target:contiguous():view(rows:size(1)), self.weights, self.sizeAverage, 1, -100))
end
