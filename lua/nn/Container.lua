-- Container: the base class of modules that hold modules.

local Container = torch.class('nn.Container', 'nn.Module')
local tape = require 'nn.tape'

function Container:__init()
   nn.Module.__init(self)
   self.modules = {}
end

--- Appends a module.
function Container:add(module)
   table.insert(self.modules, module)
   return self
end

--- The module at index.
function Container:get(index)
   return self.modules[index]
end

--- How many modules there are.
function Container:size()
   return #self.modules
end

--- Calls func on every module.
function Container:applyToModules(func)
   for _, module in ipairs(self.modules) do func(module) end
end

--- module[funcName](module, ...), with the place in the tree added to an error's message.
function Container:rethrowErrors(module, moduleIndex, funcName, ...)
   local results = {pcall(module[funcName], module, ...)}
   if not results[1] then
      error(('In %d module of %s:\n%s'):format(moduleIndex, torch.type(self), tostring(results[2])), 0)
   end
   return unpack(results, 2, table.maxn(results))
end

function Container:zeroGradParameters()
   local modules = self.modules
   for i = 1, #modules do modules[i]:zeroGradParameters() end
end

function Container:updateParameters(learningRate)
   local modules = self.modules
   for i = 1, #modules do modules[i]:updateParameters(learningRate) end
end

function Container:training()
   self:applyToModules(function(m) m:training() end)
   return nn.Module.training(self)
end

function Container:evaluate()
   self:applyToModules(function(m) m:evaluate() end)
   return nn.Module.evaluate(self)
end

--- Shares the named fields of each module with the module at the same place in mlp.
function Container:share(mlp, ...)
   for i = 1, #self.modules do self.modules[i]:share(mlp.modules[i], ...) end
   return self
end

function Container:reset(stdv)
   self:applyToModules(function(m) m:reset(stdv) end)
end

--- Parameters and gradients of all modules, in order.
function Container:parameters()
   local w, gw = {}, {}
   for i = 1, #self.modules do
      local mw, mgw = self.modules[i]:parameters()
      if mw then
         for k = 1, #mw do
            w[#w + 1], gw[#gw + 1] = mw[k], mgw[k]
         end
      end
   end
   return w, gw
end

--- Empties buffers, also the modules'.
function Container:clearState()
   local function clear(f)
      if self[f] then
         if torch.isTensor(self[f]) then
            self[f] = self[f].new()
         elseif type(self[f]) == 'table' then
            self[f] = {}
         else
            self[f] = nil
         end
      end
   end
   clear('output')
   clear('gradInput')
   tape.clear(self)
   self:applyToModules(function(m) m:clearState() end)
   return self
end
