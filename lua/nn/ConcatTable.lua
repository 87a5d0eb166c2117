-- ConcatTable: every module gets the same input (x -> {m1(x), m2(x), ...}).

local tree = require 'nn.tree'
local addInto = require('nn.tape').addInto
local ConcatTable = torch.class('nn.ConcatTable', 'nn.Container')

function ConcatTable:__init()
   nn.Container.__init(self)
   self.modules = {}
   self.output = {}
end

function ConcatTable:updateOutput(input)
   local modules, output = self.modules, self.output
   for i = 1, #modules do
      output[i] = modules[i]:updateOutput(input)
   end
   return output
end

function ConcatTable:updateGradInput(input, gradOutput)
   local gradInput = self.gradInput
   for i = 1, #self.modules do
      local d = self.modules[i]:updateGradInput(input, gradOutput[i])
      gradInput = addInto(gradInput, d, i == 1)
   end
   self.gradInput = gradInput
   return gradInput
end

function ConcatTable:backward(input, gradOutput, scale)
   local gradInput = self.gradInput
   for i = 1, #self.modules do
      local d = self.modules[i]:backward(input, gradOutput[i], scale)
      gradInput = addInto(gradInput, d, i == 1)
   end
   self.gradInput = gradInput
   return gradInput
end

function ConcatTable:accGradParameters(input, gradOutput, scale)
   for i = 1, #self.modules do
      self.modules[i]:accGradParameters(input, gradOutput[i], scale)
   end
end

function ConcatTable:accUpdateGradParameters(input, gradOutput, lr)
   for i = 1, #self.modules do
      self.modules[i]:accUpdateGradParameters(input, gradOutput[i], lr)
   end
end

function ConcatTable:__tostring__()
   return tree.branches(self, torch.type(self))
end
