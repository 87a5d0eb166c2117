-- IndexLinear: a Linear layer for inputs given as keys and values, with values optionally divided by the largest seen for their key.

local op = require('relume.core').op
local IndexLinear = torch.class('nn.IndexLinear', 'nn.Module')

--- doGradInput (false); keysOffset (0): added to the keys; weight, bias: memory to use; normalize: four more columns in front of the weights
-- hold a key's largest |value|, its inverse, 1 once seen, and a shift. weight is (inputSize, outputSize), or with those four; it begins at 0,
-- as in the original, and reset() draws it.
-- Inputs: {keys, values}, {{keys ...}, {values ...}} or {all keys, all values, sizes}.
function IndexLinear:__init(inputSize, outputSize, doGradInput, keysOffset, weight, bias, normalize)
   nn.Module.__init(self)
   self.normalize = normalize and 4 or 0
   self.weight = weight or torch.Tensor(inputSize, outputSize + self.normalize):zero()
   self.bias = bias or torch.Tensor(outputSize):zero()
   self.inputSize, self.outputSize = self.weight:size(1), self.weight:size(2) - self.normalize
   self.gradWeight, self.gradBias = self.weight.new(self.weight:size()):zero(), self.bias.new(self.outputSize):zero()
   self.weightDecay = 0
   self.doGradInput = doGradInput or false
   self.offset = keysOffset and keysOffset - 1 or -1
end

function IndexLinear:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.weight:size(2))
   self.weight:uniform(-stdv, stdv)
   self.bias:uniform(-stdv, stdv):mul(0.000001)
   if self.normalize > 0 then self.weight:narrow(2, 1, self.normalize):zero() end
   return self
end

-- Places of rows from 0, values, owners from 0 (each one long tensor), number of samples, whether it was one sample.
local function flatten(self, input)
   local keys, values, sizes = input[1], input[2], input[3]
   local single = false
   if torch.isTensor(keys) and sizes == nil then
      keys, values, single = {keys}, {values}, true
   end
   local owner, n = {}
   if torch.isTensor(keys) then
      sizes = torch.isTensor(sizes) and sizes:totable() or {sizes}
      n = #sizes
      for i, size in ipairs(sizes) do owner[i] = torch.LongTensor(size):fill(i - 1) end
   else
      n = #keys
      for i, k in ipairs(keys) do owner[i] = torch.LongTensor(k:size(1)):fill(i - 1) end
      keys, values = torch.cat(keys, 1), torch.cat(values, 1)
   end
   if keys:nElement() ~= values:nElement() then error('Keys and values should be of same size', 0) end
   local rows = keys:long() + self.offset
   if rows:nElement() > 0 and (rows:min() < 0 or rows:max() >= self.inputSize) then
      error(('[IndexLinear] key; got a row from %d to %d, need 1 to %d'):format(rows:min() + 1, rows:max() + 1, self.inputSize), 0)
   end
   return rows, values, torch.cat(owner, 1), n, single
end

-- Values in units of the largest seen for their key, which training keeps up to date, plus the key's shift.
local function normalized(self, rows, values)
   local out, weight = values:clone(), self.weight
   for i = 1, rows:size(1) do
      local w, v = weight[rows[i] + 1], values[i]
      local size = math.abs(v)
      if self.train ~= false then
         if size > w[1] then w[1], w[2] = size, 1 / size end
         w[3] = 1
      end
      out[i] = (size > w[1] and (v > 0 and 1 or -1) or v * w[2]) + w[4]
   end
   return out
end

function IndexLinear:updateOutput(input)
   local rows, values, owner, n, single = flatten(self, input)
   if self.normalize > 0 then values = normalized(self, rows, values) end
   self.rows, self.values, self.owner = rows, values, owner
   local weight = self.weight:narrow(2, self.normalize + 1, self.outputSize)
   local terms = op.mul(op.index_select(weight, rows, 0), op.unsqueeze(values, 1))
   local y = op.index_add(op.zeros({n, self.outputSize}, (weight:type():match 'torch%.(%a+)Tensor')), owner, terms, 0)
   y = op.add(y, self.bias)
   self.output:set(single and y:view(self.outputSize) or y)
   return self.output
end

function IndexLinear:accGradParameters(_, gradOutput, scale)
   scale = scale or 1
   local g = gradOutput:dim() == 1 and gradOutput:view(1, -1) or gradOutput
   local terms = op.mul(op.mul(op.index_select(g, self.owner, 0), op.unsqueeze(self.values, 1)), scale)
   local dw = self.gradWeight:narrow(2, self.normalize + 1, self.outputSize)
   dw:copy(op.index_add(dw, self.rows, terms, 0))
   if self.normalize > 0 then -- the shift's gradient: the sum of what its key's weights get
      local rowsOf = op.index_select(self.weight:narrow(2, 5, self.outputSize), self.rows, 0)
      local shift = self.gradWeight:select(2, 4)
      local d = op.mul(op.sum(op.mul(op.index_select(g, self.owner, 0), rowsOf), {1}, false), scale)
      shift:copy(op.index_add(shift, self.rows, d, 0))
   end
   if self.weightDecay ~= 0 then dw:add(self.weightDecay * scale, self.weight:narrow(2, self.normalize + 1, self.outputSize)) end
   self.gradBias:add(scale, g:sum(1):view(-1))
end

-- {keys, gradients} over all keys, where asked for.
function IndexLinear:updateGradInput(input, gradOutput)
   self.gradInput = {}
   if not self.doGradInput then return self.gradInput end
   if self.normalize > 0 then error('updateGradInput is not implemented in max-normalize mode', 0) end
   local single = gradOutput:dim() == 1
   local g = torch.mm(single and gradOutput:view(1, -1) or gradOutput, self.weight:t())
   local keys = torch.range(1, self.inputSize):long()
   if single then
      self.gradInput = {keys, g[1]}
   elseif torch.isTensor(input[1]) then
      self.gradInput = {torch.repeatTensor(keys, g:size(1), 1), g}
   else
      local ks, gs = {}, {}
      for i = 1, g:size(1) do ks[i], gs[i] = keys:clone(), g[i]:clone() end
      self.gradInput = {ks, gs}
   end
   return self.gradInput
end

function IndexLinear:clearState()
   self.rows, self.values, self.owner = nil, nil, nil
   return nn.Module.clearState(self)
end

function IndexLinear:type(type, tensorCache)
   self.rows, self.values, self.owner = nil, nil, nil
   return nn.Module.type(self, type, tensorCache)
end

function IndexLinear:__tostring__()
   return ('%s(%d -> %d)'):format(torch.type(self), self.inputSize, self.outputSize)
end
