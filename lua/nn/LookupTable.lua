-- LookupTable: rows of a learnt table by index ((...) integers from 1 -> (..., nOutput)).

local tape = require 'nn.tape'
local op = require('relume.core').op
local embedding, sub = op.embedding, op.sub
local LookupTable = torch.class('nn.LookupTable', 'nn.Module')

LookupTable.__version = 4

--- nIndex rows of nOutput numbers. paddingValue (0: none): index whose row gets no gradient. maxNorm: rows looked up are first
-- scaled down to that norm (normType, default 2).
function LookupTable:__init(nIndex, nOutput, paddingValue, maxNorm, normType)
   nn.Module.__init(self)
   self.weight = torch.Tensor(nIndex, nOutput)
   self.gradWeight = torch.Tensor(nIndex, nOutput):zero()
   self.paddingValue = paddingValue or 0
   self.maxNorm = maxNorm
   self.normType = normType
   self:reset()
end

function LookupTable:reset(stdv)
   self.weight:normal(0, stdv or 1)
end

function LookupTable:setPadding(paddingValue)
   self.paddingValue = paddingValue
   return self
end

function LookupTable:setMaxNorm(maxNorm)
   self.maxNorm = maxNorm
   return self
end

function LookupTable:setNormType(normType)
   self.normType = normType
   return self
end

--- Divides each row's gradient by how often its index occurred.
function LookupTable:scaleGradByFreq()
   self.shouldScaleGradByFreq = true
   return self
end

--- Gives up gradWeight: the rows are learnt by accUpdateGradParameters and backwardUpdate alone.
function LookupTable:accUpdateOnly()
   self.gradWeight = nil
   return self
end

-- Integers for the kernels; float tensors of whole numbers are allowed, as in the original.
local function toIndex(input)
   local kind = input:type()
   if kind == 'torch.LongTensor' or kind == 'torch.CudaLongTensor' then return input end
   return op.cast(input, 'Long')
end

--- Scales the rows that input names down to maxNorm.
function LookupTable:renorm(input)
   if not self.maxNorm then return end
   local seen, rows, p = {}, {}, self.normType or 2
   for _, i in ipairs(toIndex(input):contiguous():view(-1):totable()) do
      if not seen[i] then
         seen[i] = true
         rows[#rows + 1] = i
      end
   end
   for _, i in ipairs(rows) do
      local row = self.weight[i]
      local norm = row:norm(p)
      if norm > self.maxNorm then row:mul(self.maxNorm / (norm + 1e-7)) end
   end
end

function LookupTable:updateOutput(input)
   if self.maxNorm then self:renorm(input) end
   return tape.plain(self, input)
end

function LookupTable:compute(input, weight)
   return embedding(weight, sub(toIndex(input), 1))
end

-- Integers have no gradient: gradInput is zeros of the input's size.
function LookupTable:updateGradInput(input)
   if type(self.gradInput) ~= 'userdata' or self.gradInput:type() ~= input:type() then
      self.gradInput = input.new()
   end
   if not self.gradInput:isSameSizeAs(input) then self.gradInput:resizeAs(input):zero() end
   return self.gradInput
end

-- gradWeight's rows of the padding index stay as they are; counts divide where asked.
function LookupTable:accGradParameters(input, gradOutput, scale)
   scale = scale or 1
   local index = toIndex(input):contiguous():view(-1)
   local rows = gradOutput:contiguous():view(index:size(1), self.weight:size(2))
   if self.shouldScaleGradByFreq then
      local counts = rows.new(self.weight:size(1)):zero():indexAdd(1, index, rows.new(index:size(1)):fill(1))
      rows = torch.cdiv(rows, counts:index(1, index):view(-1, 1):expandAs(rows))
   end
   if self.paddingValue ~= 0 then
      local real = index:ne(self.paddingValue):type(rows:type())
      rows = torch.cmul(rows, real:view(-1, 1):expandAs(rows))
   end
   if scale ~= 1 then rows = rows * scale end
   self.gradWeight:indexAdd(1, index, rows)
end

function LookupTable:type(type, tensorCache)
   nn.Module.type(self, type, tensorCache)
   self.gradInput = type and torch.LongTensor() or self.gradInput
   return type and self or self._type
end

function LookupTable:clearState()
   nn.utils.clear(self, '_count', '_input', '_sorted', '_indices', '_gradOutput')
   return nn.Module.clearState(self)
end

-- Gradients of shared tables are applied the safe way.
LookupTable.sharedAccUpdateGradParameters = nn.Module.defaultAccUpdateGradParameters
