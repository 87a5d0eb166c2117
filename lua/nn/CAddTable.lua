-- CAddTable: the sum of the tensors in a table.

local tape = require 'nn.tape'
local CAddTable = torch.class('nn.CAddTable', 'nn.Module')

--- With ip the first input may be overwritten by the sum (memory is planned by the compiler; eager ignores it).
function CAddTable:__init(ip)
   nn.Module.__init(self)
   self.inplace = ip
   self.gradInput = {}
end

CAddTable.updateOutput = tape.plain

function CAddTable:compute(input)
   local sum = input[1]
   for i = 2, #input do sum = sum + input[i] end
   return sum
end

-- Each gets a copy, as each may be changed on its own.
-- Each input gets gradOutput; where sizes differ (inputs of size 1 that were repeated), the tape sums.
function CAddTable:updateGradInput(input, gradOutput)
   for i = 1, #input do
      if not input[i]:isSameSizeAs(gradOutput) then return nn.Module.updateGradInput(self, input, gradOutput) end
   end
   local gradInput = type(self.gradInput) == 'table' and self.gradInput or {}
   for i = 1, #input do
      local g = gradInput[i] or input[i].new()
      gradInput[i] = g:resizeAs(input[i]):copy(gradOutput)
   end
   for i = #input + 1, #gradInput do gradInput[i] = nil end
   self.gradInput = gradInput
   return gradInput
end
