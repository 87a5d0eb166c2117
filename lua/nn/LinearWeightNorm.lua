-- LinearWeightNorm (Salimans and Kingma, 2016): a Linear layer whose rows are g v / ||v||.

local op = require('relume.core').op
local LinearWeightNorm = torch.class('nn.LinearWeightNorm', 'nn.Linear')

--- bias (true); eps (1e-16): least norm. Parameters are v (outputSize, inputSize), g (outputSize, 1) and bias.
function LinearWeightNorm:__init(inputSize, outputSize, bias, eps)
   nn.Module.__init(self)
   self.eps = eps or 1e-16
   self.inputSize, self.outputSize = inputSize, outputSize
   self.v, self.gradV = torch.Tensor(outputSize, inputSize), torch.Tensor(outputSize, inputSize):zero()
   self.g, self.gradG = torch.Tensor(outputSize, 1), torch.Tensor(outputSize, 1):zero()
   self.weight = torch.Tensor(outputSize, inputSize)
   if bias == nil or bias then self.bias, self.gradBias = torch.Tensor(outputSize), torch.Tensor(outputSize):zero() end
   self:reset()
end

-- Norms of v's rows (outputSize, 1).
local function norms(self)
   return op.maximum(op.norm(self.v, 2, {1}, true), self.eps)
end

--- v and g of a weight (its own): v the weight, g the norms.
function LinearWeightNorm:initFromWeight(weight)
   self.v:copy(weight or self.weight)
   self.g:copy(norms(self))
   return self
end

--- A new module that computes what a Linear does.
function LinearWeightNorm.fromLinear(linear)
   local module = nn.LinearWeightNorm(linear.weight:size(2), linear.weight:size(1), linear.bias ~= nil)
   module:initFromWeight(linear.weight)
   module.weight:copy(linear.weight)
   if linear.bias then module.bias:copy(linear.bias) end
   return module
end

--- A new Linear that computes the same.
function LinearWeightNorm:toLinear()
   self:updateWeightMatrix()
   local linear = nn.Linear(self.inputSize, self.outputSize, self.bias ~= nil)
   linear.weight:copy(self.weight)
   if self.bias then linear.bias:copy(self.bias) end
   return linear
end

function LinearWeightNorm:parameters()
   return {self.v, self.g, self.bias}, {self.gradV, self.gradG, self.gradBias}
end

function LinearWeightNorm:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.inputSize)
   self.weight:uniform(-stdv, stdv)
   self:initFromWeight()
   if self.bias then self.bias:uniform(-stdv, stdv) end
   return self
end

--- weight = g v / ||v||.
function LinearWeightNorm:updateWeightMatrix()
   self.weight:copy(op.mul(self.v, op.div(self.g, norms(self))))
end

function LinearWeightNorm:updateOutput(input)
   if self.train ~= false then self:updateWeightMatrix() end
   return nn.Linear.updateOutput(self, input)
end

function LinearWeightNorm:evaluate()
   if self.train ~= false then self:updateWeightMatrix() end
   return nn.Linear.evaluate(self)
end

-- The weight's gradient, then the chain rule through g v / ||v||.
function LinearWeightNorm:accGradParameters(input, gradOutput, scale)
   self.gradWeight = self.weight:clone():zero()
   nn.Linear.accGradParameters(self, input, gradOutput, scale)
   local dw, norm = self.gradWeight, norms(self)
   self.gradWeight = nil
   local dg = op.div(op.sum(op.mul(dw, self.v), {1}, true), norm)
   self.gradG:add(dg)
   local ratio = op.div(self.g, norm)
   self.gradV:add(op.mul(op.sub(dw, op.mul(self.v, op.div(dg, norm))), ratio))
end

--- Parameters move by their own gradients, which are kept.
function LinearWeightNorm:accUpdateGradParameters(input, gradOutput, lr)
   local kept = {self.gradV:clone(), self.gradG:clone(), self.gradBias and self.gradBias:clone()}
   self:zeroGradParameters()
   self:accGradParameters(input, gradOutput, 1)
   self:updateParameters(lr)
   self.gradV:copy(kept[1])
   self.gradG:copy(kept[2])
   if self.gradBias then self.gradBias:copy(kept[3]) end
end
