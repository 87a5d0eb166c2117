-- ParallelTable: module i gets input i ({x1, x2, ...} -> {m1(x1), m2(x2), ...}).

local tree = require 'nn.tree'
local ParallelTable = torch.class('nn.ParallelTable', 'nn.Container')

function ParallelTable:__init()
   nn.Container.__init(self)
   self.modules = {}
   self.output = {}
   self.gradInput = {}
end

function ParallelTable:updateOutput(input)
   local modules, output = self.modules, self.output
   for i = 1, #modules do
      output[i] = modules[i]:updateOutput(input[i])
   end
   return output
end

function ParallelTable:updateGradInput(input, gradOutput)
   local modules, gradInput = self.modules, self.gradInput
   for i = 1, #modules do
      gradInput[i] = modules[i]:updateGradInput(input[i], gradOutput[i])
   end
   return gradInput
end

function ParallelTable:backward(input, gradOutput, scale)
   local modules, gradInput = self.modules, self.gradInput
   for i = 1, #modules do
      gradInput[i] = modules[i]:backward(input[i], gradOutput[i], scale)
   end
   return gradInput
end

function ParallelTable:accGradParameters(input, gradOutput, scale)
   for i = 1, #self.modules do
      self.modules[i]:accGradParameters(input[i], gradOutput[i], scale)
   end
end

function ParallelTable:accUpdateGradParameters(input, gradOutput, lr)
   for i = 1, #self.modules do
      self.modules[i]:accUpdateGradParameters(input[i], gradOutput[i], lr)
   end
end

function ParallelTable:__tostring__()
   return tree.branches(self, torch.type(self))
end
