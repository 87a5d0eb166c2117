-- CAdd: a learnt tensor added to the input; sizes of 1 stretch.

local fit = require 'nn.fit'
local CAdd = torch.class('nn.CAdd', 'nn.Module')

--- Sizes as numbers or a LongStorage; a missing first (batch) dimension is taken as 1.
function CAdd:__init(...)
   nn.Module.__init(self)
   local first = ...
   self.size = torch.typename(first) == 'torch.LongStorage' and first or torch.LongStorage {...}
   self.bias = torch.Tensor(self.size)
   self.gradBias = torch.Tensor(self.size)
   self.output:resize(self.size)
   self:reset()
end

function CAdd:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.bias:nElement())
   self.bias:uniform(-stdv, stdv)
end

function CAdd:compute(input, _, bias)
   local p = fit(bias, input)
   return input + p:expandAs(input)
end
