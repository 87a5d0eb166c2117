-- MapTable: one module, cloned with shared parameters, for every input ({x1, x2, ...} -> {m(x1), m(x2), ...}).

local MapTable = torch.class('nn.MapTable', 'nn.Container')

--- shared (true: weight, bias and their gradients; a list: those fields; false: nothing) says what the clones share.
function MapTable:__init(module, shared)
   nn.Container.__init(self)
   self.shared = (shared == nil) and true or shared
   self.sharedparams = {'weight', 'bias', 'gradWeight', 'gradBias'}
   self.output = {}
   self.gradInput = {}
   self:add(module)
end

-- Clones of the first module until there are n.
function MapTable:_extend(n)
   self.sharedparams = self.sharedparams or {'weight', 'bias', 'gradWeight', 'gradBias'}
   self.modules[1] = self.module
   for i = 2, n do
      if not self.modules[i] then
         if self.shared then
            self.modules[i] = self.module:clone(unpack(type(self.shared) == 'table' and self.shared or self.sharedparams))
         else
            self.modules[i] = self.module:clone()
         end
      end
   end
end

--- Makes room for n inputs.
function MapTable:resize(n)
   self:_extend(n)
   for i = n + 1, #self.modules do self.modules[i] = nil end
end

function MapTable:add(module)
   assert(not self.module, 'Single module required')
   self.module = module
   self.modules[1] = self.module
   return self
end

function MapTable:updateOutput(input)
   self.output = {}
   if #self.modules < #input then self:_extend(#input) end
   for i = 1, #input do
      self.output[i] = self.modules[i]:updateOutput(input[i])
   end
   return self.output
end

function MapTable:updateGradInput(input, gradOutput)
   self.gradInput = {}
   if #self.modules < #input then self:_extend(#input) end
   for i = 1, #input do
      self.gradInput[i] = self.modules[i]:updateGradInput(input[i], gradOutput[i])
   end
   return self.gradInput
end

function MapTable:accGradParameters(input, gradOutput, scale)
   if #self.modules < #input then self:_extend(#input) end
   for i = 1, #input do
      self.modules[i]:accGradParameters(input[i], gradOutput[i], scale)
   end
end

function MapTable:accUpdateGradParameters(input, gradOutput, lr)
   if #self.modules < #input then self:_extend(#input) end
   for i = 1, #input do
      self.modules[i]:accUpdateGradParameters(input[i], gradOutput[i], lr)
   end
end

function MapTable:zeroGradParameters()
   if self.module then
      if self.shared then
         self.module:zeroGradParameters()
      else
         nn.Container.zeroGradParameters(self)
      end
   end
end

function MapTable:updateParameters(learningRate)
   if self.module then
      if self.shared then
         self.module:updateParameters(learningRate)
      else
         nn.Container.updateParameters(self, learningRate)
      end
   end
end

function MapTable:clearState()
   for i = 2, #self.modules do self.modules[i] = nil end
   return nn.Container.clearState(self)
end

function MapTable:__tostring__()
   local text = tostring(self.module):gsub('\n', '\n  ')
   return torch.type(self) .. ' {\n  (*): ' .. text .. '\n}'
end
