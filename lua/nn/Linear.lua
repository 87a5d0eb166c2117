-- Linear: y = W x + b (Glorot-era initialisation: uniform within 1 / sqrt(inputSize)).

local linear = require('relume.core').op.linear
local Linear = torch.class('nn.Linear', 'nn.Module')

--- bias (default true): whether to add b. weight is (outputSize, inputSize).
function Linear:__init(inputSize, outputSize, bias)
   nn.Module.__init(self)
   bias = bias == nil or bias
   self.weight = torch.Tensor(outputSize, inputSize)
   self.gradWeight = torch.Tensor(outputSize, inputSize):zero()
   if bias then
      self.bias = torch.Tensor(outputSize)
      self.gradBias = torch.Tensor(outputSize):zero()
   end
   self:reset()
end

--- Takes the bias away.
function Linear:noBias()
   self.bias = nil
   self.gradBias = nil
   return self
end

--- New random parameters; stdv: their standard deviation.
function Linear:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.weight:size(2))
   self.weight:uniform(-stdv, stdv)
   if self.bias then self.bias:uniform(-stdv, stdv) end
   return self
end

-- input is (inputSize), (batch, inputSize) or (..., inputSize).
function Linear:compute(input, weight, bias)
   local d = input:dim()
   if d == 2 then return linear(input, weight, bias) end
   local n = weight:size(2)
   local y = linear(input:contiguous():view(input:nElement() / n, n), weight, bias)
   if d == 1 then return y:view(weight:size(1)) end
   local sizes = {}
   for i = 1, d - 1 do sizes[i] = input:size(i) end
   sizes[d] = weight:size(1)
   return y:view(unpack(sizes))
end

--- An input of three or more dimensions that forward does not take leaves the parameters as they are and has no gradient, as in the original.
function Linear:backward(input, gradOutput, scale)
   local d = input:dim()
   if d < 3 or input:size(d) == self.weight:size(2) then return nn.Module.backward(self, input, gradOutput, scale) end
   self.gradInput:resizeAs(input):zero()
   return self.gradInput
end

function Linear:__tostring__()
   return torch.type(self) .. ('(%d -> %d)'):format(self.weight:size(2), self.weight:size(1))
      .. (self.bias == nil and ' without bias' or '')
end
