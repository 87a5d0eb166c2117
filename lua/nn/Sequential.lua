-- Sequential: modules one after another (input -> 1 -> 2 -> ... -> output).

local tree = require 'nn.tree'
local Sequential = torch.class('nn.Sequential', 'nn.Container')

function Sequential:__len()
   return #self.modules
end

-- Programs write #net. Where # asks tables for no __len, the object's raw length has to be right: false at 1 to the number of modules.
local raw = #setmetatable({}, {__len = function() return 1 end}) == 0
local function keepLength(self)
   if not raw then return end
   local n = #self.modules
   for i = 1, n do self[i] = false end
   for i = n + 1, math.huge do
      if rawget(self, i) == nil then break end
      self[i] = nil
   end
end

--- Writes the fields, without what only keeps the length.
function Sequential:write(file)
   local fields = {}
   for k, v in next, self do
      if type(k) ~= 'number' then fields[k] = v end
   end
   file:writeObject(fields)
end

function Sequential:read(file)
   for k, v in pairs(file:readObject()) do self[k] = v end
   keepLength(self)
end

--- Appends a module.
function Sequential:add(module)
   if #self.modules == 0 then self.gradInput = module.gradInput end
   table.insert(self.modules, module)
   keepLength(self)
   self.output = module.output
   return self
end

--- Puts module in at index (default: at the end).
function Sequential:insert(module, index)
   index = index or #self.modules + 1
   if index > #self.modules + 1 or index < 1 then
      error 'index should be contiguous to existing modules'
   end
   table.insert(self.modules, index, module)
   keepLength(self)
   self.output = self.modules[#self.modules].output
   self.gradInput = self.modules[1].gradInput
end

--- Removes the module at index (default: the last).
function Sequential:remove(index)
   index = index or #self.modules
   if index > #self.modules or index < 1 then error 'index out of range' end
   table.remove(self.modules, index)
   keepLength(self)
   if #self.modules > 0 then
      self.output = self.modules[#self.modules].output
      self.gradInput = self.modules[1].gradInput
   else
      self.output = torch.Tensor()
      self.gradInput = torch.Tensor()
   end
end

function Sequential:updateOutput(input)
   local modules = self.modules
   for i = 1, #modules do
      input = modules[i]:updateOutput(input)
   end
   self.output = input
   return input
end

function Sequential:updateGradInput(input, gradOutput)
   local modules = self.modules
   for i = #modules, 2, -1 do
      gradOutput = modules[i]:updateGradInput(modules[i - 1].output, gradOutput)
      modules[i].gradInput = gradOutput
   end
   if modules[1] then gradOutput = modules[1]:updateGradInput(input, gradOutput) end
   self.gradInput = gradOutput
   return gradOutput
end

function Sequential:accGradParameters(input, gradOutput, scale)
   scale = scale or 1
   local modules = self.modules
   for i = #modules, 2, -1 do
      modules[i]:accGradParameters(modules[i - 1].output, gradOutput, scale)
      gradOutput = modules[i].gradInput
   end
   if modules[1] then modules[1]:accGradParameters(input, gradOutput, scale) end
end

function Sequential:backward(input, gradOutput, scale)
   scale = scale or 1
   local modules = self.modules
   for i = #modules, 2, -1 do
      gradOutput = modules[i]:backward(modules[i - 1].output, gradOutput, scale)
      modules[i].gradInput = gradOutput
   end
   if modules[1] then gradOutput = modules[1]:backward(input, gradOutput, scale) end
   self.gradInput = gradOutput
   return gradOutput
end

function Sequential:accUpdateGradParameters(input, gradOutput, lr)
   local modules = self.modules
   for i = #modules, 2, -1 do
      modules[i]:accUpdateGradParameters(modules[i - 1].output, gradOutput, lr)
      gradOutput = modules[i].gradInput
   end
   if modules[1] then modules[1]:accUpdateGradParameters(input, gradOutput, lr) end
end

function Sequential:__tostring__()
   return tree.chain(self, 'nn.Sequential')
end
