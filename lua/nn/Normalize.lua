-- Normalize: each row divided by its p-norm.

local op = require('relume.core').op
local Normalize = torch.class('nn.Normalize', 'nn.Module')

--- p > 0 (math.huge: largest absolute value); eps (1e-10) is added before the root.
function Normalize:__init(p, eps)
   nn.Module.__init(self)
   assert(p, 'p-norm not provided')
   assert(p > 0, p .. '-norm not supported')
   self.p = p
   self.eps = eps or 1e-10
end

-- (features) or (batch, features).
function Normalize:compute(input)
   assert(input:dim() <= 2, 'only 1d layer supported')
   local last, p = {input:dim() - 1}, self.p
   local norm
   if p == math.huge then
      norm = op.amax(torch.abs(input), last, true)
   else
      norm = op.sum(torch.pow(torch.abs(input), p), last, true)
      norm = torch.pow(norm + self.eps, 1 / p)
   end
   return op.div(input, norm)
end

function Normalize:__tostring__()
   return ('%s(%f)'):format(torch.type(self), self.p)
end
