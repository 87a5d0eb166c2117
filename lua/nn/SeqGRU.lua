-- SeqGRU (Cho et al., 2014; layout of the rnn package): a GRU over whole sequences.
-- (steps, batch, inputSize) -> (steps, batch, outputSize); h = (1 - u) tanh(W x + R (r h) + b) + u h.

local op = require('relume.core').op
local matmul, add, mul, sub, slice, select = op.matmul, op.add, op.mul, op.sub, op.slice, op.select
local SeqGRU = torch.class('nn.SeqGRU', 'nn.Module')

--- weight is (inputSize + outputSize, 3 outputSize), in the order reset, update, candidate. Set `batchfirst` for (batch, steps, inputSize).
function SeqGRU:__init(inputSize, outputSize)
   nn.Module.__init(self)
   self.inputSize, self.outputSize = inputSize, outputSize
   self.batchfirst = false
   self.weight = torch.Tensor(inputSize + outputSize, 3 * outputSize)
   self.gradWeight = torch.Tensor(inputSize + outputSize, 3 * outputSize):zero()
   self.bias = torch.Tensor(3 * outputSize)
   self.gradBias = torch.Tensor(3 * outputSize):zero()
   self:reset()
end

--- Weights normal with deviation std (1 / sqrt(inputSize + outputSize)), update gates at 1.
function SeqGRU:reset(std)
   local n = self.outputSize
   self.weight:normal(0, std or 1 / math.sqrt(self.inputSize + n))
   self.bias:zero():narrow(1, n + 1, n):fill(1)
   return self
end

-- One step from a = W x + b (batch, 3n) and the state h, or nil for zeros.
local function step(a, h, n, gatesWeight, candidateWeight)
   local gates, candidate = slice(a, 1, 0, 2 * n), slice(a, 1, 2 * n, n)
   if h then gates = add(gates, matmul(h, gatesWeight)) end
   gates = op.sigmoid(gates)
   local r, u = slice(gates, 1, 0, n), slice(gates, 1, n, n)
   if h then candidate = add(candidate, matmul(mul(r, h), candidateWeight)) end
   candidate = op.tanh(candidate)
   local new = mul(sub(1, u), candidate)
   return h and add(new, mul(u, h)) or new
end

-- x is (steps, batch, inputSize), or transposed with batchfirst; {h0, x} gives the state before the first step.
function SeqGRU:compute(input, weight, bias)
   local x, h = input, nil
   if type(input) == 'table' then h, x = input[1], input[2] end
   local n, d, time = self.outputSize, self.inputSize, self.batchfirst and 1 or 0
   if x:dim() ~= 3 or x:size(3) ~= d then
      error(('[SeqGRU] input; got %s, need 3 dimensions, the last of %d'):format(table.concat(x:size():totable(), 'x'), d), 0)
   end
   local all = add(matmul(x:contiguous():view(x:size(1) * x:size(2), d), slice(weight, 0, 0, d)), bias):view(x:size(1), x:size(2), 3 * n)
   local recurrent, hs = slice(weight, 0, d, n), {}
   local gatesWeight, candidateWeight = slice(recurrent, 1, 0, 2 * n), slice(recurrent, 1, 2 * n, n)
   for t = 1, x:size(time + 1) do
      h = step(select(all, time, t - 1), h, n, gatesWeight, candidateWeight)
      hs[t] = h
   end
   return op.stack(hs, time)
end

function SeqGRU:__tostring__()
   return ('%s(%d -> %d)'):format(torch.type(self), self.inputSize, self.outputSize)
end
