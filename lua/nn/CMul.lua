-- CMul: the input times a learnt tensor, element by element; sizes of 1 stretch.

local fit = require 'nn.fit'
local CMul = torch.class('nn.CMul', 'nn.Module')

--- Sizes as numbers or a LongStorage; a missing first (batch) dimension is taken as 1.
function CMul:__init(...)
   nn.Module.__init(self)
   local first = ...
   self.size = torch.typename(first) == 'torch.LongStorage' and first or torch.LongStorage {...}
   self.weight = torch.Tensor(self.size)
   self.gradWeight = torch.Tensor(self.size)
   self.output:resize(self.size)
   self:reset()
end

function CMul:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.weight:nElement())
   self.weight:uniform(-stdv, stdv)
end

function CMul:compute(input, weight)
   local p = fit(weight, input)
   return torch.cmul(input, p:expandAs(input))
end
