-- Euclidean: distance of the input from each of outputSize learnt points.

local op = require('relume.core').op
local Euclidean = torch.class('nn.Euclidean', 'nn.Module')

--- weight is (inputSize, outputSize).
function Euclidean:__init(inputSize, outputSize)
   nn.Module.__init(self)
   self.weight = torch.Tensor(inputSize, outputSize)
   self.gradWeight = torch.Tensor(inputSize, outputSize)
   self:reset()
end

function Euclidean:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.weight:size(1))
   self.weight:uniform(-stdv, stdv)
end

function Euclidean:compute(input, weight)
   local n, o = weight:size(1), weight:size(2)
   local x = input:contiguous():view(-1, n, 1)
   local d = op.sub(x, weight:view(1, n, o))
   local y = torch.sqrt(op.sum(op.mul(d, d), {1}, false))
   return input:dim() == 1 and y:view(o) or y
end
