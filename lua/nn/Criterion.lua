-- Criterion: the base class of losses (input, target -> number; gradInput). A subclass defines a pure
-- `compute(self, input, target)` that returns a rank-0 tensor, or updateOutput and updateGradInput by hand.

local tape = require 'nn.tape'
local Criterion = torch.class('nn.Criterion')

function Criterion:__init()
   self.gradInput = torch.Tensor()
   self.output = 0
end

--- The loss: a number, or a rank-0 tensor when input is on the caller's tape.
function Criterion:updateOutput(input, target)
   if self.compute then
      local onTape, loss = tape.loss(self, input, target)
      self.output = onTape or loss:detach():sum()
   end
   return self.output
end

--- updateOutput under the name that programs call.
function Criterion:forward(input, target)
   return self:updateOutput(input, target)
end

--- updateGradInput under the name that programs call.
function Criterion:backward(input, target)
   return self:updateGradInput(input, target)
end

--- Computes and returns self.gradInput, the loss's gradient with respect to input.
function Criterion:updateGradInput(input, target)
   if self.compute then return tape.lossGrad(self, input, target) end
   return self.gradInput
end

--- A deep copy.
function Criterion:clone()
   return nn.utils.copyObject(self)
end

--- Converts the criterion's tensors to a tensor type.
function Criterion:type(type, tensorCache)
   assert(type, 'Criterion: must provide a type to convert to')
   tape.clear(self)
   tensorCache = tensorCache or {}
   for key, param in pairs(self) do
      self[key] = nn.utils.recursiveType(param, type, tensorCache)
   end
   return self
end

function Criterion:float() return self:type('torch.FloatTensor') end
function Criterion:double() return self:type('torch.DoubleTensor') end
function Criterion:half() return self:type('torch.HalfTensor') end
function Criterion:cuda() return self:type('torch.CudaTensor') end
function Criterion:cudaDouble() return self:type('torch.CudaDoubleTensor') end
function Criterion:cudaHalf() return self:type('torch.CudaHalfTensor') end

--- criterion(input, target): forward, then backward; returns output and gradInput.
function Criterion:__call__(input, target)
   self.output = self:forward(input, target)
   self.gradInput = self:backward(input, target)
   return self.output, self.gradInput
end
