-- ReLU6: min(max(x, 0), 6).

local hardtanh = require('relume.core').op.hardtanh
local ReLU6 = torch.class('nn.ReLU6', 'nn.Module')

--- inplace: the input may be overwritten (memory is planned by the compiler; eager ignores it).
function ReLU6:__init(inplace)
   nn.Module.__init(self)
   self.inplace = inplace or false
   if inplace and type(inplace) ~= 'boolean' then error 'in-place flag must be boolean' end
end

function ReLU6:compute(input)
   return hardtanh(input, 0, 6)
end
