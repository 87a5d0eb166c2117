-- SoftPlus: log(1 + exp(beta x)) / beta.

local softplus = require('relume.core').op.softplus
local SoftPlus = torch.class('nn.SoftPlus', 'nn.Module')

function SoftPlus:__init(beta)
   nn.Module.__init(self)
   self.beta = beta or 1
   self.threshold = 20
end

function SoftPlus:compute(input)
   return softplus(input, self.beta)
end
