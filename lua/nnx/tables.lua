-- PushTable and PullTable: takes an element out of a table here, puts it into a table further on (table -> table without it -> table with it).

local PushTable = torch.class('nn.PushTable', 'nn.Module')

--- Takes element `index` away; push:pull(i) makes the module that puts it back at i.
function PushTable:__init(index)
   nn.Module.__init(self)
   self._index, self._pulls, self.output, self.gradInput = index, {}, {}, {}
end

function PushTable:pull(index)
   local pull = nn.PullTable(self, index)
   table.insert(self._pulls, pull)
   return pull
end

-- The list without its element i, and with x at i.
local function without(list, i)
   local out = {}
   for k, v in ipairs(list) do
      if k ~= i then out[#out + 1] = v end
   end
   return out
end

local function with(list, i, x)
   local out = {}
   if torch.type(list) ~= 'table' then list = {list} end
   for k, v in ipairs(list) do out[k] = v end
   table.insert(out, i, x)
   return out
end

function PushTable:updateOutput(input)
   self.output = without(input, self._index)
   self._pushed, self._grad = input[self._index], nil
   return self.output
end

function PushTable:_pulled(grad)
   self._grad = self._grad and self._grad + grad or grad:clone()
end

function PushTable:updateGradInput(_, gradOutput)
   self.gradInput = with(gradOutput, self._index, self._grad or self._pushed:clone():zero())
   return self.gradInput
end

local PullTable = torch.class('nn.PullTable', 'nn.Module')

function PullTable:__init(push, index)
   nn.Module.__init(self)
   self._push, self._index, self.output, self.gradInput = push, index, {}, {}
end

function PullTable:updateOutput(input)
   self.output = with(input, self._index, self._push._pushed)
   return self.output
end

function PullTable:updateGradInput(input, gradOutput)
   self._push:_pulled(gradOutput[self._index])
   local rest = without(gradOutput, self._index)
   self.gradInput = torch.type(input) == 'table' and rest or rest[1]
   return self.gradInput
end
