-- Parallel: module i gets slice i of the input along one dimension; outputs are joined along another.

local tree = require 'nn.tree'
local tape = require 'nn.tape'
local Parallel = torch.class('nn.Parallel', 'nn.Container')

function Parallel:__init(inputDimension, outputDimension)
   nn.Container.__init(self)
   self.modules = {}
   self.inputDimension = inputDimension
   self.outputDimension = outputDimension
end

function Parallel:updateOutput(input)
   local outs = {}
   for i = 1, input:size(self.inputDimension) do
      outs[i] = self.modules[i]:updateOutput(input:select(self.inputDimension, i))
   end
   self.output = tape.keep(self.output, torch.cat(outs, self.outputDimension))
   return self.output
end

-- Calls method of each module with its slices; what it returns goes into gradInput when asked.
local function each(self, method, input, gradOutput, scale, gradInput)
   local offset, dim = 1, self.outputDimension
   for i = 1, input:size(self.inputDimension) do
      local module = self.modules[i]
      local n = module.output:size(dim)
      local d = module[method](module, input:select(self.inputDimension, i), gradOutput:narrow(dim, offset, n), scale)
      if gradInput and d and d:nElement() > 0 then gradInput:select(self.inputDimension, i):copy(d) end
      offset = offset + n
   end
end

function Parallel:updateGradInput(input, gradOutput)
   self.gradInput:resizeAs(input):zero()
   each(self, 'updateGradInput', input, gradOutput, nil, self.gradInput)
   return self.gradInput
end

function Parallel:backward(input, gradOutput, scale)
   self.gradInput:resizeAs(input):zero()
   each(self, 'backward', input, gradOutput, scale or 1, self.gradInput)
   return self.gradInput
end

function Parallel:accGradParameters(input, gradOutput, scale)
   each(self, 'accGradParameters', input, gradOutput, scale or 1)
end

function Parallel:accUpdateGradParameters(input, gradOutput, lr)
   each(self, 'accUpdateGradParameters', input, gradOutput, lr)
end

function Parallel:__tostring__()
   return tree.branches(self, torch.type(self))
end
