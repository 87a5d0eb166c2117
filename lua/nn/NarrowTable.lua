-- NarrowTable: a run of elements of a table; the others get zero gradients.

local NarrowTable = torch.class('nn.NarrowTable', 'nn.Module')

--- length elements (default 1; negative: up to that far from the end) from offset on.
function NarrowTable:__init(offset, length)
   nn.Module.__init(self)
   self.offset = offset
   self.length = length or 1
   if not offset then error 'nn.NarrowTable(offset, length)' end
   self.output = {}
   self.gradInput = {}
end

local function count(self, input)
   local length = self.length
   if length < 0 then return #input - self.offset + 2 + length end
   return length
end

function NarrowTable:updateOutput(input)
   local output = {}
   for i = 1, count(self, input) do output[i] = input[self.offset + i - 1] end
   self.output = output
   return output
end

local function zeros(x)
   if type(x) ~= 'table' then return x.new():resizeAs(x):zero() end
   local r = {}
   for k, v in pairs(x) do r[k] = zeros(v) end
   return r
end

function NarrowTable:updateGradInput(input, gradOutput)
   local gradInput, first, last = {}, self.offset, self.offset + count(self, input) - 1
   for i = 1, #input do
      if i >= first and i <= last then
         gradInput[i] = gradOutput[i - first + 1]
      else
         gradInput[i] = zeros(input[i])
      end
   end
   self.gradInput = gradInput
   return gradInput
end

function NarrowTable:clearState()
   self.output, self.gradInput = {}, {}
   return self
end
