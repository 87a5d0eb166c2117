-- LeakyReLU: x where x > 0, else negval x.

local leaky_relu = require('relume.core').op.leaky_relu
local LeakyReLU = torch.class('nn.LeakyReLU', 'nn.Module')

--- negval (1/100); ip: the input may be overwritten (memory is planned by the compiler; eager ignores it).
function LeakyReLU:__init(negval, ip)
   nn.Module.__init(self)
   if type(negval) == 'boolean' then negval, ip = nil, negval end
   self.negval = negval or 1 / 100
   if type(self.negval) ~= 'number' then error 'nn.LeakyReLU(negval)' end
   self.inplace = ip or false
end

function LeakyReLU:compute(input)
   return leaky_relu(input, self.negval)
end

function LeakyReLU:__tostring__()
   return torch.type(self) .. ('(%g)'):format(self.negval)
end
