-- ELU: x where x > 0, else alpha (exp(x) - 1) (Clevert et al., 2015).

local elu = require('relume.core').op.elu
local ELU = torch.class('nn.ELU', 'nn.Module')

--- alpha (1); inplace: the input may be overwritten (memory is planned by the compiler; eager ignores it).
function ELU:__init(alpha, inplace)
   nn.Module.__init(self)
   self.alpha = alpha or 1
   assert(type(self.alpha) == 'number')
   self.inplace = inplace or false
   assert(type(self.inplace) == 'boolean')
end

function ELU:compute(input)
   return elu(input, self.alpha)
end

function ELU:__tostring__()
   return ('%s (alpha:%f)'):format(torch.type(self), self.alpha)
end
