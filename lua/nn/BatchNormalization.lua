-- BatchNormalization (Ioffe and Szegedy, 2015): each feature to mean 0 and variance 1 over the batch, then scaled and shifted.

local op = require('relume.core').op
local batch_norm, batch_norm_eval, unsqueeze = op.batch_norm, op.batch_norm_eval, op.unsqueeze
local BatchNormalization = torch.class('nn.BatchNormalization', 'nn.Module')

BatchNormalization.__version = 2
BatchNormalization.nDim = 2
BatchNormalization.lastForward = true -- backward belongs to the last forward, whatever tensor holds the input

--- nOutput features; eps (1e-5) is added to the variance; momentum (0.1) of the running statistics, which evaluate mode uses:
-- running = (1 - momentum) running + momentum batch (unbiased variance); affine (true): learnt weight and bias.
function BatchNormalization:__init(nOutput, eps, momentum, affine)
   nn.Module.__init(self)
   assert(nOutput and type(nOutput) == 'number', 'Missing argument #1: dimensionality of input. ')
   assert(nOutput ~= 0, 'To set affine=false call BatchNormalization(nOutput, eps, momentum, false) ')
   self.affine = affine == nil or affine
   self.eps = eps or 1e-5
   self.train = true
   self.momentum = momentum or 0.1
   self.running_mean = torch.zeros(nOutput)
   self.running_var = torch.ones(nOutput)
   if self.affine then
      self.weight = torch.Tensor(nOutput)
      self.bias = torch.Tensor(nOutput)
      self.gradWeight = torch.Tensor(nOutput)
      self.gradBias = torch.Tensor(nOutput)
      self:reset()
   end
end

--- Weights uniform in [0, 1), biases 0, running statistics as new.
function BatchNormalization:reset()
   if self.weight then self.weight:uniform() end
   if self.bias then self.bias:zero() end
   self.running_mean:zero()
   self.running_var:fill(1)
end

function BatchNormalization:checkInputDim(input)
   local dims, n = input:dim(), self.running_mean:nElement()
   if dims ~= self.nDim and dims ~= self.nDim - 1 then
      error(('only mini-batch supported (%dD tensor), got %dD tensor instead'):format(self.nDim, dims), 0)
   end
   local features = input:size(dims == self.nDim and 2 or 1)
   if features ~= n then error(('got %d-feature tensor, expected %d'):format(features, n), 0) end
end

function BatchNormalization:compute(input, weight, bias)
   self:checkInputDim(input)
   local single = input:dim() < self.nDim
   local x = single and unsqueeze(input, 0) or input
   local y
   if self.train == false then
      y = batch_norm_eval(x, self.running_mean, self.running_var, weight, bias, self.eps)
   else
      local mean, var
      y, mean, var = batch_norm(x, weight, bias, self.eps)
      local m, n = self.momentum, x:nElement() / x:size(2)
      self.running_mean:mul(1 - m):add(m, mean:detach())
      self.running_var:mul(1 - m):add(n > 1 and m * n / (n - 1) or m, var:detach())
   end
   return single and y:select(1, 1) or y
end

-- Version 1 kept the inverse standard deviation.
function BatchNormalization:read(file, version)
   nn.Module.read(self, file)
   if version < 2 and self.running_std then
      self.running_var = self.running_std:pow(-2):add(-self.eps)
      self.running_std = nil
   end
end

function BatchNormalization:clearState()
   nn.utils.clear(self, '_input', '_gradOutput', 'save_mean', 'save_std')
   return nn.Module.clearState(self)
end

function BatchNormalization:__tostring__()
   return ('%s (%dD) (%d)'):format(torch.type(self), self.nDim, self.running_mean:nElement())
end
