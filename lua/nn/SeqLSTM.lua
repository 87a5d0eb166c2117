-- SeqLSTM (Hochreiter and Schmidhuber, 1997; layout of the rnn package): an LSTM over whole sequences, one product and one cell a step.
-- (steps, batch, inputsize) -> (steps, batch, outputsize).

local op = require('relume.core').op
local lstm_cell, matmul, add, slice, stack, zeros = op.lstm_cell, op.matmul, op.add, op.slice, op.stack, op.zeros
local SeqLSTM = torch.class('nn.SeqLSTM', 'nn.Module')

--- weight is (inputsize + outputsize, 4 outputsize), gates in the order input, forget, output, candidate. biases (1): 2 keeps one bias for the
-- input's product and one for the state's, as cuDNN does; bias is then (2, 4 outputsize). Set `batchfirst` for (batch, steps, inputsize).
function SeqLSTM:__init(inputsize, outputsize, biases)
   nn.Module.__init(self)
   outputsize = outputsize or inputsize
   self.inputsize, self.outputsize = inputsize, outputsize
   self.batchfirst = false
   self.weight = torch.Tensor(inputsize + outputsize, 4 * outputsize)
   self.gradWeight = torch.Tensor(inputsize + outputsize, 4 * outputsize):zero()
   if biases == 2 then
      self.bias, self.gradBias = torch.Tensor(2, 4 * outputsize), torch.Tensor(2, 4 * outputsize):zero()
   else
      self.bias, self.gradBias = torch.Tensor(4 * outputsize), torch.Tensor(4 * outputsize):zero()
   end
   self:reset()
end

--- Weights normal with deviation std (1 / sqrt(inputsize + outputsize)), forget gates open.
function SeqLSTM:reset(std)
   local n = self.outputsize
   self.weight:normal(0, std or 1 / math.sqrt(self.inputsize + n))
   self.bias:zero()
   local first = self.bias:dim() == 2 and self.bias[1] or self.bias
   first:narrow(1, n + 1, n):fill(1)
   return self
end

-- x is (steps, batch, inputsize), or transposed with batchfirst; {c0, h0, x} or {h0, x} give the states before the first step.
function SeqLSTM:compute(input, weight, bias)
   local x, h, c = input, nil, nil
   if type(input) == 'table' then
      if #input == 3 then c, h, x = input[1], input[2], input[3] else h, x = input[1], input[2] end
   end
   local n, d, time = self.outputsize, self.inputsize, self.batchfirst and 1 or 0
   if x:dim() ~= 3 or x:size(3) ~= d then
      error(('[SeqLSTM] input; got %s, need 3 dimensions, the last of %d'):format(table.concat(x:size():totable(), 'x'), d), 0)
   end
   local steps, batch = x:size(time + 1), x:size(2 - time)
   local b = bias:dim() == 2 and op.sum(bias, {0}, false) or bias
   local all = add(matmul(x:contiguous():view(steps * batch, d), slice(weight, 0, 0, d)), b)
   all = all:view(x:size(1), x:size(2), 4 * n)
   local recurrent, hs = slice(weight, 0, d, n), {}
   for t = 1, steps do
      local gates = op.select(all, time, t - 1)
      if h then gates = add(gates, matmul(h, recurrent)) end
      c = c or zeros({batch, n}, (x:type():match 'torch%.(%a+)Tensor'))
      h, c = lstm_cell(gates, c)
      hs[t] = h
   end
   return stack(hs, time)
end

function SeqLSTM:__tostring__()
   return ('%s(%d -> %d)'):format(torch.type(self), self.inputsize, self.outputsize)
end
