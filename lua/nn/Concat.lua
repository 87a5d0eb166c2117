-- Concat: the same input to every module, outputs joined along a dimension.

local tree = require 'nn.tree'
local tape = require 'nn.tape'
local Concat = torch.class('nn.Concat', 'nn.Container')

--- dimension counts from 1 in the outputs as they are (batch dimension included).
function Concat:__init(dimension)
   nn.Container.__init(self)
   self.outputSize = torch.LongStorage()
   self.dimension = dimension
end

function Concat:updateOutput(input)
   local modules, outs = self.modules, {}
   for i = 1, #modules do
      outs[i] = modules[i]:updateOutput(input)
   end
   self.output = tape.keep(self.output, torch.cat(outs, self.dimension))
   return self.output
end

-- Adds up what each module's method returns for its part of gradOutput; gradients may be nested tables.
local function run(self, method, input, gradOutput, scale)
   local offset, dim, gradInput = 1, self.dimension, self.gradInput
   for i = 1, #self.modules do
      local module = self.modules[i]
      local n = module.output:size(dim)
      local d = module[method](module, input, gradOutput:narrow(dim, offset, n), scale)
      offset = offset + n
      gradInput = tape.addInto(gradInput, d, i == 1)
   end
   self.gradInput = gradInput
   return gradInput
end

function Concat:updateGradInput(input, gradOutput)
   return run(self, 'updateGradInput', input, gradOutput)
end

function Concat:backward(input, gradOutput, scale)
   return run(self, 'backward', input, gradOutput, scale or 1)
end

local function acc(self, method, input, gradOutput, scale)
   local offset, dim = 1, self.dimension
   for _, module in ipairs(self.modules) do
      local n = module.output:size(dim)
      module[method](module, input, gradOutput:narrow(dim, offset, n), scale)
      offset = offset + n
   end
end

function Concat:accGradParameters(input, gradOutput, scale)
   acc(self, 'accGradParameters', input, gradOutput, scale or 1)
end

function Concat:accUpdateGradParameters(input, gradOutput, lr)
   acc(self, 'accUpdateGradParameters', input, gradOutput, lr)
end

function Concat:__tostring__()
   return tree.branches(self, torch.type(self))
end
