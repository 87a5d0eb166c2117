-- Sqrt: the square root; its gradient is 0 where the input is 0.

local tape = require 'nn.tape'
local Sqrt = torch.class('nn.Sqrt', 'nn.Module')

--- eps (default 0) is kept for files; the original reads it nowhere else.
function Sqrt:__init(b)
   nn.Module.__init(self)
   self.eps = b or 0
end

Sqrt.updateOutput = tape.plain

function Sqrt:compute(input)
   return torch.sqrt(input)
end

function Sqrt:updateGradInput(input, gradOutput)
   local zero = self.output:eq(0)
   local root = self.output + zero:type(self.output:type())
   self.gradInput:resizeAs(input):copy(gradOutput):mul(0.5):cdiv(root)
   self.gradInput:maskedFill(zero, 0)
   return self.gradInput
end
