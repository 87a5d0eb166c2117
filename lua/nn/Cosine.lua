-- Cosine: cosine of the angle between the input and each of outputSize learnt vectors.

local op = require('relume.core').op
local Cosine = torch.class('nn.Cosine', 'nn.Module')

function Cosine:__init(inputSize, outputSize)
   nn.Module.__init(self)
   self.weight = torch.Tensor(outputSize, inputSize)
   self.gradWeight = torch.Tensor(outputSize, inputSize)
   self:reset()
end

function Cosine:reset(stdv)
   stdv = stdv or 1 / math.sqrt(self.weight:size(1))
   self.weight:uniform(-stdv, stdv)
end

local function norms(x) return torch.sqrt(op.sum(torch.cmul(x, x), {1}, true)) + 1e-12 end

function Cosine:compute(input, weight)
   local x = input:dim() == 1 and input:view(1, input:size(1)) or input
   local y = op.div(op.div(torch.mm(x, weight:t()), norms(x)), norms(weight):t())
   return input:dim() == 1 and y:view(y:size(2)) or y
end
