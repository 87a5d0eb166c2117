-- FlattenTable: nested tables of tensors as one flat table, in order.

local FlattenTable = torch.class('nn.FlattenTable', 'nn.Module')

function FlattenTable:__init()
   nn.Module.__init(self)
   self.output = {}
   self.gradInput = {}
   self.input_map = {} -- another table when the structure changed
end

local function flatten(x, list)
   if type(x) == 'table' then
      for i = 1, #x do flatten(x[i], list) end
   else
      list[#list + 1] = x
   end
   return list
end

-- The gradients list, from position i on, in the shape of x; and the next position.
local function unflatten(x, list, i)
   if type(x) ~= 'table' then return list[i], i + 1 end
   local r = {}
   for k = 1, #x do r[k], i = unflatten(x[k], list, i) end
   return r, i
end

function FlattenTable:updateOutput(input)
   assert(type(input) == 'table', 'input must be a table')
   local list = flatten(input, {})
   if #list == #self.output then -- the same table again, as the original does while the structure stays
      for i = 1, #list do self.output[i] = list[i] end
   else
      self.output = list
      self.input_map = {}
   end
   return self.output
end

function FlattenTable:updateGradInput(input, gradOutput)
   self.gradInput = unflatten(input, gradOutput, 1)
   return self.gradInput
end

function FlattenTable:clearState()
   self.output, self.gradInput, self.input_map = {}, {}, {}
   return self
end
