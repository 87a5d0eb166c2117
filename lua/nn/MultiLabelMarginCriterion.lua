-- MultiLabelMarginCriterion: sum over right classes y and wrong ones i of max(0, 1 - x[y] + x[i]), divided by the number of classes.

local op = require('relume.core').op
local MultiLabelMarginCriterion = torch.class('nn.MultiLabelMarginCriterion', 'nn.Criterion')

--- The target lists the right classes of each sample, then zeros.
function MultiLabelMarginCriterion:__init()
   nn.Criterion.__init(self)
   self.sizeAverage = true
end

function MultiLabelMarginCriterion:compute(input, target)
   local x = input:dim() == 1 and input:view(1, input:size(1)) or input
   local n, c = x:size(1), x:size(2)
   if target:nElement() ~= n * c then
      error(('[MultiLabelMarginCriterion] target; got %d numbers, need %d'):format(target:nElement(), n * c), 0)
   end
   local kind = x:type():match 'torch%.(%a+)Tensor'
   local y = require('relume.core').op.cast(target, 'Long'):contiguous():view(n, c)
   local real = op.cumprod(op.cast(op.gt(y, 0), kind), 1) -- 1 before the first 0
   local places = op.maximum(op.sub(y, 1), 0)
   local right = op.scatter_add(op.zeros({n, c}, kind), places, real, 1)
   local wrong = op.cast(op.eq(right, 0), kind)
   local margins = op.relu(op.sub(op.add(op.unsqueeze(x, 1), 1), op.unsqueeze(op.gather(x, places, 1), 2)))
   local sum = op.sum(op.mul(op.mul(margins, op.unsqueeze(wrong, 1)), op.unsqueeze(real, 2)), {}, false) / c
   return self.sizeAverage and sum / n or sum
end
