-- SelectTable: one element of a table; the others get zero gradients.

local SelectTable = torch.class('nn.SelectTable', 'nn.Module')

--- index: a position (negative: from the end) or any other key.
function SelectTable:__init(index)
   nn.Module.__init(self)
   self.index = index
   self.gradInput = {}
end

local function key(self, input)
   local index = self.index
   if type(index) == 'number' and index < 0 then return #input + index + 1 end
   return index
end

function SelectTable:updateOutput(input)
   local value = input[key(self, input)]
   if value == nil then error(('[SelectTable] index out of range; got %s, need 1 to %d'):format(tostring(self.index), #input), 2) end
   self.output = value
   return value
end

local function zeros(x)
   if type(x) ~= 'table' then return x.new():resizeAs(x):zero() end
   local r = {}
   for k, v in pairs(x) do r[k] = zeros(v) end
   return r
end

function SelectTable:updateGradInput(input, gradOutput)
   local index = key(self, input)
   local gradInput = {}
   for k, v in pairs(input) do
      if k ~= index then gradInput[k] = zeros(v) end
   end
   gradInput[index] = gradOutput
   self.gradInput = gradInput
   return gradInput
end

function SelectTable:clearState()
   self.output, self.gradInput = nil, {}
   return self
end

function SelectTable:type(type, tensorCache)
   self.gradInput, self.output = {}, nil
   return nn.Module.type(self, type, tensorCache)
end

function SelectTable:__tostring__()
   return torch.type(self) .. '(' .. tostring(self.index) .. ')'
end
