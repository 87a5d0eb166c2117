-- WeightedEuclidean: distances to learnt centres, each number weighted (x -> ||c_j * (x - w_j)||, (batch, inputSize) -> (batch, outputSize)).

local op = require('relume.core').op
local WeightedEuclidean = torch.class('nn.WeightedEuclidean', 'nn.Module')

--- weight and diagCov (the c_j, 1 at first) are (inputSize, outputSize). `bias` is diagCov's other name.
function WeightedEuclidean:__init(inputSize, outputSize)
   nn.Module.__init(self)
   self.weight, self.gradWeight = torch.Tensor(inputSize, outputSize), torch.Tensor(inputSize, outputSize):zero()
   self.diagCov, self.gradDiagCov = torch.Tensor(inputSize, outputSize), torch.Tensor(inputSize, outputSize):zero()
   self.bias, self.gradBias = self.diagCov, self.gradDiagCov
   self:reset()
end

function WeightedEuclidean:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.weight:size(1))
   self.weight:uniform(-stdv, stdv)
   self.diagCov:fill(1)
end

function WeightedEuclidean:compute(input, weight, diagCov)
   if input:dim() > 2 then error('1D or 2D input expected', 0) end
   local x = input:dim() == 1 and op.unsqueeze(input, 0) or input
   local d = op.mul(op.sub(op.unsqueeze(x, 2), weight), diagCov) -- (batch, inputSize, outputSize)
   local y = op.norm(d, 2, {1}, false)
   return input:dim() == 1 and y:view(weight:size(2)) or y
end

-- Files of the original do not have the other name.
function WeightedEuclidean:read(file)
   nn.Module.read(self, file)
   self.bias, self.gradBias = self.diagCov, self.gradDiagCov
end
