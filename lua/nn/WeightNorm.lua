-- WeightNorm (Salimans and Kingma, 2016): a module whose weight is g v / ||v||, one g for each index of one dimension.

local op = require('relume.core').op
local WeightNorm = torch.class('nn.WeightNorm', 'nn.Decorator')

-- weight with dimension `dim` in front as (outputs, others), and back.
local function orders(n, dim)
   local to, back = {dim - 1}, {}
   for i = 0, n - 1 do
      if i ~= dim - 1 then to[#to + 1] = i end
   end
   for i, d in ipairs(to) do back[d + 1] = i - 1 end
   return to, back
end

local function matrix(t, dim)
   local to = orders(t:dim(), dim)
   return op.permute(t, to):contiguous():view(t:size(dim), t:nElement() / t:size(dim))
end

--- module: one with a weight; outputDim (1): the weight's dimension of outputs. Parameters are v, g and the module's bias.
function WeightNorm:__init(module, outputDim)
   nn.Decorator.__init(self, module)
   assert(module.weight, '[WeightNorm] module; need one with a weight')
   self.outputDim = outputDim or 1
   self.weight, self.gradWeight = module.weight, module.gradWeight
   self.bias, self.gradBias = module.bias, module.gradBias
   self.weightSize = self.weight:size()
   local outputs = self.weight:size(self.outputDim)
   self.viewIn = torch.LongStorage {outputs, self.weight:nElement() / outputs}
   self.v, self.gradV = torch.Tensor(self.viewIn), torch.Tensor(self.viewIn):zero()
   self.g, self.gradG = torch.Tensor(outputs), torch.Tensor(outputs):zero()
   self:resetInit()
end

--- New random v, g its norm, bias 0.
function WeightNorm:resetInit()
   self.v:normal(0, math.sqrt(2 / self.v:size(2)))
   self.g:copy(torch.norm(self.v, 2, 2):view(-1))
   if self.bias then self.bias:zero() end
end

-- Norms of v's rows, kept away from 0, as (outputs, 1).
local function norms(self)
   return torch.sqrt(torch.pow(self.v, 2):sum(2) + 1e-4)
end

--- Writes g v / ||v|| into the module's weight.
function WeightNorm:updateWeight()
   local w = torch.cmul(self.v, torch.cdiv(self.g:view(-1, 1), norms(self)):expandAs(self.v))
   local sizes, to, back = self.weight:size():totable(), orders(self.weight:dim(), self.outputDim)
   local permuted = {}
   for i, d in ipairs(to) do permuted[i] = sizes[d + 1] end
   self.weight:copy(op.permute(w:view(unpack(permuted)), back))
end

function WeightNorm:updateOutput(input)
   if self.train ~= false then self:updateWeight() end
   self.output = self.modules[1]:updateOutput(input)
   return self.output
end

function WeightNorm:evaluate()
   if self.train ~= false then self:updateWeight() end
   return nn.Decorator.evaluate(self)
end

-- gradV and gradG follow from the sum that the module's gradWeight holds.
function WeightNorm:accGradParameters(input, gradOutput, scale)
   self.modules[1]:accGradParameters(input, gradOutput, scale)
   local dw, norm = matrix(self.gradWeight, self.outputDim), norms(self)
   local ratio = torch.cdiv(self.g:view(-1, 1), norm)
   local dg = torch.cdiv(torch.cmul(dw, self.v):sum(2), norm)
   self.gradG:copy(dg:view(-1))
   local along = torch.cmul(torch.cdiv(ratio, norm), dg):expandAs(self.v)
   self.gradV:copy(torch.cmul(dw, ratio:expandAs(dw)) - torch.cmul(self.v, along))
end

function WeightNorm:zeroGradParameters()
   self.modules[1]:zeroGradParameters()
   self.gradV:zero()
   self.gradG:zero()
end

function WeightNorm:updateParameters(lr)
   self.modules[1]:updateParameters(lr)
   self.g:add(-lr, self.gradG)
   self.v:add(-lr, self.gradV)
end

function WeightNorm:parameters()
   return {self.v, self.g, self.bias}, {self.gradV, self.gradG, self.gradBias}
end

-- The original's files hold no weight.
function WeightNorm:read(file)
   nn.Decorator.read(self, file)
   local module = self.modules[1]
   if not self.weight then
      module.weight, module.gradWeight = self.v.new(self.weightSize), self.v.new(self.weightSize):zero()
      self.weight, self.gradWeight = module.weight, module.gradWeight
      self:updateWeight()
   end
end
