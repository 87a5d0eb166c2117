-- ClassSimplexCriterion (https://arxiv.org/abs/1506.08230): squared distance to the corner of a regular simplex that stands for the class.

local op = require('relume.core').op
local ClassSimplexCriterion = torch.class('nn.ClassSimplexCriterion', 'nn.MSECriterion')

-- The n + 1 corners, of norm 1, of a regular simplex around 0 in n dimensions; two corners have the product -1 / n.
local function corners(n)
   local a = torch.zeros(n + 1, n)
   for k = 1, n do
      local rest = k > 1 and a[k]:narrow(1, 1, k - 1):norm() ^ 2 or 0
      a[k][k] = math.sqrt(1 - rest)
      a:narrow(1, k + 1, n + 1 - k):select(2, k):fill((-1 / n - rest) / a[k][k])
   end
   return a
end

--- nClasses, more than 1; the input has that many columns, the last of which stays 0.
function ClassSimplexCriterion:__init(nClasses)
   nn.MSECriterion.__init(self)
   assert(nClasses and nClasses > 1 and nClasses % 1 == 0, 'Required positive integer argument nClasses > 1')
   self.nClasses = nClasses
   self.simplex = torch.cat(corners(nClasses - 1), torch.zeros(nClasses, 1), 2)
end

function ClassSimplexCriterion:compute(input, target)
   local goal
   if type(target) == 'number' then
      goal = self.simplex[target]
   else
      assert(target:dim() == 1, '1D tensors only!')
      goal = self.simplex:index(1, require('relume.core').op.cast(target, 'Long'))
   end
   return op.mse_loss(input, goal:view(unpack(input:size():totable())), self.sizeAverage)
end

--- Scores of the classes: products with their corners ((batch, nClasses) -> the same size).
function ClassSimplexCriterion:getPredictions(input)
   if input:dim() == 1 then input = input:view(1, input:size(1)) end
   return torch.mm(input, self.simplex:t())
end

--- The class of the nearest corner for each row.
function ClassSimplexCriterion:getTopPrediction(input)
   local _, best = torch.max(self:getPredictions(input), 2)
   return best:view(-1)
end
