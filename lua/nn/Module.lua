-- Module: the base class (input -> output; gradOutput -> gradInput), Torch7's interface.
-- A subclass either defines a pure `compute(self, input, weight, bias)`, or updateOutput, updateGradInput and
-- accGradParameters by hand.

local tape = require 'nn.tape'
local Module = torch.class('nn.Module')

function Module:__init()
   self.gradInput = torch.Tensor()
   self.output = torch.Tensor()
   self._type = self.output:type()
end

--- Learnable tensors and their gradients: two lists in the same order, or nothing.
function Module:parameters()
   if self.weight and self.bias then
      return {self.weight, self.bias}, {self.gradWeight, self.gradBias}
   elseif self.weight then
      return {self.weight}, {self.gradWeight}
   elseif self.bias then
      return {self.bias}, {self.gradBias}
   end
end

--- Computes and returns self.output for input.
function Module:updateOutput(input)
   if self.compute then return tape.forward(self, input) end
   return self.output
end

--- updateOutput under the name that programs call.
function Module:forward(input)
   return self:updateOutput(input)
end

--- Computes and returns self.gradInput, the gradient with respect to input.
function Module:updateGradInput(input, gradOutput)
   if self.compute then return tape.gradInput(self, input, gradOutput) end
   return self.gradInput
end

--- Adds scale times the parameters' gradients to gradWeight and gradBias.
function Module:accGradParameters(input, gradOutput, scale)
   if self.compute and (self.weight or self.bias) then
      tape.accGrad(self, input, gradOutput, scale or 1)
   end
end

local updateGradInput, accGradParameters = Module.updateGradInput, Module.accGradParameters

--- updateGradInput and accGradParameters; returns gradInput.
function Module:backward(input, gradOutput, scale)
   scale = scale or 1
   if self.compute and self.updateGradInput == updateGradInput and self.accGradParameters == accGradParameters then
      return tape.backward(self, input, gradOutput, scale)
   end
   self:updateGradInput(input, gradOutput)
   self:accGradParameters(input, gradOutput, scale)
   return self.gradInput
end

--- backward followed by an update of the parameters with learning rate lr.
function Module:backwardUpdate(input, gradOutput, lr)
   self:updateGradInput(input, gradOutput)
   self:accUpdateGradParameters(input, gradOutput, lr)
   return self.gradInput
end

--- Updates the parameters at once, without keeping their gradients; shared parameters take the safe way.
function Module:accUpdateGradParameters(input, gradOutput, lr)
   if self.shared then
      self:sharedAccUpdateGradParameters(input, gradOutput, lr)
   else
      self:defaultAccUpdateGradParameters(input, gradOutput, lr)
   end
end

function Module:defaultAccUpdateGradParameters(input, gradOutput, lr)
   local gradWeight, gradBias = self.gradWeight, self.gradBias
   self.gradWeight, self.gradBias = self.weight, self.bias
   self:accGradParameters(input, gradOutput, -lr)
   self.gradWeight, self.gradBias = gradWeight, gradBias
end

function Module:sharedAccUpdateGradParameters(input, gradOutput, lr)
   if self:parameters() then
      self:zeroGradParameters()
      self:accGradParameters(input, gradOutput, 1)
      self:updateParameters(lr)
   end
end

--- Sets all gradients to 0.
function Module:zeroGradParameters()
   local _, grads = self:parameters()
   if grads then
      for i = 1, #grads do grads[i]:zero() end
   end
end

--- weight = weight - learningRate * gradWeight, for every parameter.
function Module:updateParameters(learningRate)
   local params, grads = self:parameters()
   if params then
      for i = 1, #params do params[i]:add(-learningRate, grads[i]) end
   end
end

--- Training mode (dropout on, batch statistics).
function Module:training()
   self.train = true
   return self
end

--- Evaluation mode.
function Module:evaluate()
   self.train = false
   return self
end

--- Makes the named fields ('weight', 'bias', ...) the same memory as mlp's.
function Module:share(mlp, ...)
   for _, name in ipairs {...} do
      if self[name] ~= nil then
         self[name]:set(mlp[name])
         self.shared, mlp.shared = true, true
      end
   end
   return self
end

--- A deep copy; names given are then shared with the original.
function Module:clone(...)
   local copy = nn.utils.copyObject(self)
   if select('#', ...) > 0 then copy:share(self, ...) end
   return copy
end

--- Converts every tensor of the module to a tensor type ('torch.FloatTensor'); without one, returns the current type.
-- Tensors that shared memory share it afterwards; tensorCache extends that over several calls.
function Module:type(type, tensorCache)
   if not type then return self._type end
   tensorCache = tensorCache or {}
   tape.clear(self)
   for key, param in pairs(self) do
      self[key] = nn.utils.recursiveType(param, type, tensorCache)
   end
   self._type = type
   return self
end

function Module:float(...) return self:type('torch.FloatTensor', ...) end
function Module:double(...) return self:type('torch.DoubleTensor', ...) end
function Module:half(...) return self:type('torch.HalfTensor', ...) end
function Module:cuda(...) return self:type('torch.CudaTensor', ...) end
function Module:cudaDouble(...) return self:type('torch.CudaDoubleTensor', ...) end
function Module:cudaHalf(...) return self:type('torch.CudaHalfTensor', ...) end

function Module:reset() end

--- Serialisation: the fields as one table.
function Module:write(file)
   local fields = {}
   for k, v in pairs(self) do fields[k] = v end
   file:writeObject(fields)
end

function Module:read(file)
   for k, v in pairs(file:readObject()) do self[k] = v end
end

--- Moves tensors into one flat storage and returns it as a vector (see nn.utils.flatten).
function Module.flatten(parameters)
   return nn.utils.flatten(parameters)
end

--- Two vectors that hold all parameters and all gradients; the module's tensors become views of them. Calling it again
-- returns the same memory; tensors that shared memory still do.
function Module:getParameters()
   local params, grads = self:parameters()
   local p, g = nn.utils.flatten(params), nn.utils.flatten(grads)
   assert(p:nElement() == g:nElement(), 'check that you are sharing parameters and gradParameters')
   for i = 1, params and #params or 0 do
      assert(params[i]:storageOffset() - p:storageOffset() == grads[i]:storageOffset() - g:storageOffset(),
         'misaligned parameter at ' .. i)
   end
   return p, g
end

--- module(input[, gradOutput]): forward, and backward when gradOutput is given.
function Module:__call__(input, gradOutput)
   self:forward(input)
   if gradOutput then
      self:backward(input, gradOutput)
      return self.output, self.gradInput
   end
   return self.output
end

--- All modules of class typename in the tree, and for each the container it is in.
function Module:findModules(typename, container)
   container = container or self
   local nodes, containers = {}, {}
   if torch.type(self) == typename then
      nodes[1], containers[1] = self, container
   end
   for _, child in ipairs(self.modules or {}) do
      if child.findModules then
         local n, c = child:findModules(typename, self)
         for i = 1, #n do
            nodes[#nodes + 1], containers[#containers + 1] = n[i], c[i]
         end
      end
   end
   return nodes, containers
end

--- All modules of the tree, parents first.
function Module:listModules()
   local list = {self}
   for _, child in ipairs(self.modules or {}) do
      for _, m in ipairs(child:listModules()) do list[#list + 1] = m end
   end
   return list
end

--- Empties the buffers, which makes the module small to save.
function Module:clearState()
   tape.clear(self)
   return nn.utils.clear(self, 'output', 'gradInput')
end

--- Calls callback on the module and everything inside it.
function Module:apply(callback)
   callback(self)
   for _, child in ipairs(self.modules or {}) do child:apply(callback) end
end

--- Replaces every module of the tree, parents first, by what callback returns for it.
function Module:replace(callback)
   local out = callback(self)
   for i, child in ipairs(out.modules or {}) do
      out.modules[i] = child:replace(callback)
   end
   return out
end
