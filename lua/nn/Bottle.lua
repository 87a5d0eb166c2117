-- Bottle: a module for few dimensions applied to more: leading dimensions are merged before it and put back after it.

local Bottle = torch.class('nn.Bottle', 'nn.Decorator')

--- module takes nInputDim (2) dimensions, batch included, and gives nOutputDim (nInputDim).
function Bottle:__init(module, nInputDim, nOutputDim)
   nn.Decorator.__init(self, module)
   self.nInputDim = nInputDim or 2
   self.nOutputDim = nOutputDim or self.nInputDim
   self.dimDelta = self.nInputDim - self.nOutputDim
end

-- x with its first dimensions merged so that n are left.
local function merge(x, n)
   local extra, sizes = x:dim() - n, {1}
   for i = 1, extra + 1 do sizes[1] = sizes[1] * x:size(i) end
   for i = extra + 2, x:dim() do sizes[#sizes + 1] = x:size(i) end
   return x:contiguous():view(unpack(sizes))
end

-- y with its first dimension cut again as x's first ones.
local function split(y, x, n)
   local sizes = {}
   for i = 1, x:dim() - n + 1 do sizes[i] = x:size(i) end
   for i = 2, y:dim() do sizes[#sizes + 1] = y:size(i) end
   return y:view(unpack(sizes))
end

function Bottle:updateOutput(input)
   if input:dim() > self.nInputDim then
      self._input = merge(input, self.nInputDim)
      self.output = split(self.modules[1]:updateOutput(self._input), input, self.nInputDim)
   else
      self._input = input
      self.output = self.modules[1]:updateOutput(input)
   end
   return self.output
end

local function gradOf(self, input, gradOutput)
   return input:dim() > self.nInputDim and merge(gradOutput, self.nOutputDim) or gradOutput
end

function Bottle:updateGradInput(input, gradOutput)
   local d = self.modules[1]:updateGradInput(self._input, gradOf(self, input, gradOutput))
   self.gradInput = d:viewAs(input)
   return self.gradInput
end

function Bottle:backward(input, gradOutput, scale)
   local d = self.modules[1]:backward(self._input, gradOf(self, input, gradOutput), scale)
   self.gradInput = d:viewAs(input)
   return self.gradInput
end

function Bottle:accGradParameters(input, gradOutput, scale)
   self.modules[1]:accGradParameters(self._input, gradOf(self, input, gradOutput), scale)
end

function Bottle:clearState()
   self._input = nil
   return nn.Decorator.clearState(self)
end
