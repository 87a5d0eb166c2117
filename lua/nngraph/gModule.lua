-- nn.gModule: a network graph as one module (input or table of inputs -> output or table of outputs).
--
-- 1. `forwardnodes` is an order in which inputs come before their users, as in the original's files.
-- 2. From it comes a list of steps, made at first use: `from` are the steps whose values it takes (none: the network's input),
--    `select` the entry taken of a table, `module` what is applied.
-- 3. Nothing is stored between forward and backward: values are the modules' outputs.

local gModule = torch.class('nn.gModule', 'nn.Container')

local function asList(nodes, what)
   if nngraph.isNode(nodes) then nodes = {nodes} end
   for i, node in ipairs(nodes) do
      if not nngraph.isNode(node) then
         error(('[gModule] %s %d; got %s, need a node'):format(what, i, torch.type(node)), 4)
      end
   end
   if #nodes == 0 then error('[gModule] ' .. what .. 's; got none, need at least one node', 4) end
   return nodes
end

-- The node that stands for the network's input, put below the input nodes.
local function root(inputs)
   local innode = nngraph.Node({})
   if #inputs == 1 then
      inputs[1]:add(innode, true)
   else
      local parts = {innode:split(#inputs)}
      for i, node in ipairs(inputs) do node:add(parts[i], true) end
   end
   return innode
end

--- inputs: nodes that take what forward is given (nn.Identity()()); outputs: nodes whose values it returns.
function gModule:__init(inputs, outputs)
   nn.Container.__init(self)
   inputs, outputs = asList(inputs, 'input'), asList(outputs, 'output')
   for i, node in ipairs(inputs) do
      if #node.children > 0 then error(('[gModule] input %d; got a node with inputs, need one without'):format(i), 3) end
   end
   local outnode = nngraph.Node({})
   for _, node in ipairs(outputs) do outnode:add(node, true) end
   local innode = root(inputs)
   self.bg = outnode:graph()
   if not self.bg.nodes[innode] then error('[gModule] inputs; got nodes that no output uses, need all used', 3) end
   local copies
   self.fg, copies = self.bg:reverse()
   for i, node in ipairs(self.bg:leaves()) do
      if node ~= innode then
         error(('[gModule] node %s (%d); got no input, need it in the list of inputs'):format(node:label(), i), 3)
      end
   end
   for i, node in ipairs(inputs) do
      if not self.bg.nodes[node] then error(('[gModule] input %d; got a node that no output uses, need all used'):format(i), 3) end
   end
   self.outnode, self.innode = outnode, copies[innode]
   self.forwardnodes, self.backwardnodes = self.fg:topsort(), self.bg:topsort()
   for i, node in ipairs(self.forwardnodes) do
      node.data.forwardNodeId = i
      if node.data.module then self:add(node.data.module) end
   end
   self.verbose = false
   self.nInputs = #inputs
end

-- The list of steps (see above); steps.out is the number of the last, the network's output.
local function compile(self)
   local steps, place = {}, {}
   for _, node in ipairs(self.forwardnodes) do
      local data, from = node.data, {}
      for k, source in ipairs(data.mapindex) do from[k] = place[source] end
      steps[#steps + 1] = {from = from, select = data.selectindex, module = data.module, split = data.nSplitOutputs, wrap = data.wrap}
      place[data] = #steps
   end
   self.steps = steps
   return steps
end

-- What step takes: the network's input, one value, or a table of several.
local function inputOf(step, values, input)
   local from = step.from
   local x
   if #from == 0 then
      x = input
   elseif #from == 1 then
      x = values[from[1]]
   else
      x = {}
      for k = 1, #from do x[k] = values[from[k]] end
   end
   if step.wrap then x = {x} end
   if step.select then x = x[step.select] end
   return x
end

function gModule:checkInput(input)
   if self.nInputs and self.nInputs > 1 and (type(input) ~= 'table' or #input < self.nInputs) then
      error(('[gModule] input; got %s, need a table of %d'):format(type(input) == 'table' and #input or torch.type(input), self.nInputs), 0)
   end
end

function gModule:updateOutput(input)
   local steps = self.steps or compile(self)
   self:checkInput(input)
   local values = {}
   for i = 1, #steps do
      local step = steps[i]
      local x = inputOf(step, values, input)
      if step.module then x = self:runForwardFunction(step.module, x, i) end
      values[i] = x
   end
   self.output = values[#steps]
   return self.output
end

--- One module's forward; with nngraph.setDebug(true) an error names the node.
function gModule:runForwardFunction(module, input, i)
   if not nngraph.debugging() then return module:updateOutput(input) end
   local ok, value = pcall(module.updateOutput, module, input)
   if ok then return value end
   local notes = self.forwardnodes[i].data.annotations
   error(('%s\nin node %s %s'):format(tostring(value), notes._debugLabel or '', notes.name or tostring(module)), 0)
end

-- a + b over tensors and nested tables; nil is nothing.
local function sum(a, b)
   if a == nil then return b end
   if b == nil then return a end
   if type(a) ~= 'table' then return torch.add(a, b) end
   local r = {}
   for k in pairs(a) do r[k] = sum(a[k], b[k]) end
   for k in pairs(b) do
      if r[k] == nil then r[k] = b[k] end
   end
   return r
end

-- The gradient g in the shape of value: zeros for what nothing depends on.
local function complete(g, value)
   if type(value) == 'table' then
      local r = {}
      for k = 1, #value do r[k] = complete(g and g[k], value[k]) end
      return r
   end
   if g ~= nil then return g end
   return value.new(value:size()):zero()
end

-- Gives the gradient dx of step's input to the steps that it came from; what belongs to the network's input is returned.
local function give(step, dx, grads)
   local from = step.from
   if step.select then dx = {[step.select] = dx} end
   if step.wrap then dx = dx[1] end
   if #from == 0 then return dx end
   if #from == 1 then
      grads[from[1]] = sum(grads[from[1]], dx)
   else
      for k = 1, #from do grads[from[k]] = sum(grads[from[k]], dx[k]) end
   end
end

-- Walks backward; f(module, input, gradOutput) returns gradInput. Returns the gradient of the network's input.
local function walk(self, input, gradOutput, f)
   local steps = self.steps or compile(self)
   local values, grads, dinput = {}, {}, nil
   for i = 1, #steps do
      local step = steps[i]
      if step.module then values[i] = step.module.output else values[i] = inputOf(step, values, input) end
   end
   grads[#steps] = gradOutput
   for i = #steps, 1, -1 do
      local step = steps[i]
      local g = grads[i]
      if step.module then
         g = f(step.module, inputOf(step, values, input), complete(g, values[i]))
      end
      if g ~= nil then
         local dx = give(step, g, grads)
         if dx ~= nil then dinput = sum(dinput, dx) end
      end
   end
   return complete(dinput, input)
end

local function gradInput(module, x, g) return module:updateGradInput(x, g) end
local function backward(module, x, g) return module:backward(x, g) end

function gModule:updateGradInput(input, gradOutput)
   self.gradInput = walk(self, input, gradOutput, gradInput)
   return self.gradInput
end

function gModule:accGradParameters(input, gradOutput, scale)
   walk(self, input, gradOutput, function(module, x, g)
      module:accGradParameters(x, g, scale or 1)
      return module.gradInput
   end)
end

function gModule:accUpdateGradParameters(input, gradOutput, lr)
   walk(self, input, gradOutput, function(module, x, g)
      module:accUpdateGradParameters(x, g, lr)
      return module.gradInput
   end)
end

function gModule:backward(input, gradOutput, scale)
   local f = backward
   if scale and scale ~= 1 then
      f = function(module, x, g) return module:backward(x, g, scale) end
   end
   self.gradInput = walk(self, input, gradOutput, f)
   return self.gradInput
end

--- Converts the modules; the graph itself holds no other tensors.
function gModule:type(type, tensorCache)
   if not type then return self._type end
   tensorCache = tensorCache or {}
   for _, module in ipairs(self.modules) do module:type(type, tensorCache) end
   self.output = nn.utils.recursiveType(self.output, type, tensorCache)
   self.gradInput = nn.utils.recursiveType(self.gradInput, type, tensorCache)
   self._type = type
   return self
end

--- Shares named fields of the modules with those of other, a network of the same graph.
function gModule:share(other, ...)
   for i, module in ipairs(self.modules) do module:share(other.modules[i], ...) end
   return self
end

--- Replaces modules, in the graph too.
function gModule:replace(callback)
   local out = callback(self)
   if out ~= self then return out end
   local replaced = {}
   for i, module in ipairs(self.modules) do
      self.modules[i] = module:replace(callback)
      replaced[module] = self.modules[i]
   end
   for _, node in ipairs(self.forwardnodes) do node.data.module = replaced[node.data.module] or node.data.module end
   self.steps = nil
   return self
end

-- Files hold the graph, not the steps.
function gModule:write(file)
   local steps = self.steps
   self.steps = nil
   nn.Container.write(self, file)
   self.steps = steps
end

function gModule:__tostring__()
   return torch.type(self)
end
