-- ClassToken (Devlin et al., 2018; Dosovitskiy et al., 2020): a learnt place put before a sequence ((batch, n, d) -> (batch, n + 1, d)).

local op = require('relume.core').op
local ClassToken = torch.class('nn.ClassToken', 'nn.Module')

--- d features, 0 at first.
function ClassToken:__init(d)
   nn.Module.__init(self)
   self.weight = torch.Tensor(1, 1, d)
   self.gradWeight = torch.Tensor(1, 1, d):zero()
   self:reset()
end

function ClassToken:reset(stdv)
   if stdv then self.weight:normal(0, stdv) else self.weight:zero() end
   return self
end

function ClassToken:compute(input, weight)
   return op.cat({op.expand(weight, {input:size(1), 1, weight:size(3)}), input}, 1)
end
