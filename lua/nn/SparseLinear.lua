-- SparseLinear: a Linear layer for inputs given as rows of {index, value}, repeated indices adding up.

local tape = require 'nn.tape'
local op = require('relume.core').op
local SparseLinear = torch.class('nn.SparseLinear', 'nn.Module')

--- doGradInput (false): whether updateGradInput computes anything. Inputs: one (n, 2) tensor, a table of them, or (batch, n, 2).
function SparseLinear:__init(inputSize, outputSize, doGradInput)
   nn.Module.__init(self)
   self.weightDecay = 0
   self.doGradInput = doGradInput or false
   self.weight, self.gradWeight = torch.Tensor(outputSize, inputSize), torch.Tensor(outputSize, inputSize):zero()
   self.bias, self.gradBias = torch.Tensor(outputSize), torch.Tensor(outputSize):zero()
   self.gradInput = {}
   self:reset()
end

function SparseLinear:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.weight:size(2))
   self.weight:uniform(-stdv, stdv)
   self.bias:uniform(-stdv, stdv):mul(0.000001)
end

-- Lists of samples; whether the input was one sample.
local function samples(input)
   if type(input) == 'table' then return input, false end
   if input:dim() == 2 then return {input}, true end
   local list = {}
   for i = 1, input:size(1) do list[i] = input[i] end
   return list, false
end

-- All pairs: columns, values and samples, each (pairs).
local function pairsOf(list, width)
   local all, owner = torch.cat(list, 1), {}
   for i, t in ipairs(list) do owner[i] = torch.LongTensor(t:size(1)):fill(i - 1) end
   local columns = all:select(2, 1):long()
   if columns:nElement() > 0 and (columns:min() < 1 or columns:max() > width) then
      error(('[SparseLinear] index; got %d to %d, need 1 to %d'):format(columns:min(), columns:max(), width), 0)
   end
   return columns - 1, all:select(2, 2):contiguous(), torch.cat(owner, 1)
end

SparseLinear.updateOutput = tape.forward

function SparseLinear:compute(input, weight, bias)
   local list, single = samples(input)
   if #list == 0 then return bias:clone() end
   local columns, values, owner = pairsOf(list, weight:size(2))
   local terms = op.mul(op.index_select(weight, columns, 1), values) -- (out, pairs)
   local empty = op.zeros({weight:size(1), #list}, (weight:type():match 'torch%.(%a+)Tensor'))
   local y = op.add(op.transpose(op.index_add(empty, owner, terms, 1), 0, 1), bias):contiguous()
   return single and y:select(1, 1) or y
end

-- A list of {index, gradient} for every index, one a sample, where asked for.
function SparseLinear:updateGradInput(input, gradOutput)
   if not self.doGradInput then return self.gradInput end
   local list = samples(input)
   local g = torch.mm(gradOutput:dim() == 1 and gradOutput:view(1, -1) or gradOutput, self.weight)
   local index, out = torch.range(1, g:size(2)):type(g:type()), {}
   for i = 1, #list do out[i] = torch.cat(index:view(-1, 1), g[i]:contiguous():view(-1, 1), 2) end
   self.gradInput = out
   return self.gradInput
end

function SparseLinear:accGradParameters(input, gradOutput, scale)
   tape.accGrad(self, input, gradOutput, scale or 1)
   if self.weightDecay ~= 0 then self.gradWeight:add(self.weightDecay * (scale or 1), self.weight) end
end

function SparseLinear:__tostring__()
   return ('%s(%d -> %d)'):format(torch.type(self), self.weight:size(2), self.weight:size(1))
end
