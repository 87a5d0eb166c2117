-- HardTanh: x limited to a range.

local hardtanh = require('relume.core').op.hardtanh
local HardTanh = torch.class('nn.HardTanh', 'nn.Module')

--- min_value (-1), max_value (1); inplace: the input may be overwritten (memory is planned by the compiler; eager ignores it).
function HardTanh:__init(min_value, max_value, inplace)
   nn.Module.__init(self)
   self.min_val = min_value or -1
   self.max_val = max_value or 1
   self.inplace = inplace or false
   if inplace and type(inplace) ~= 'boolean' then error 'in-place flag must be boolean' end
   assert(self.max_val > self.min_val, 'max_value must be larger than min_value')
end

function HardTanh:compute(input)
   return hardtanh(input, self.min_val, self.max_val)
end
