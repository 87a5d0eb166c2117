-- Threshold: x where x > threshold, else a constant.

local threshold = require('relume.core').op.threshold
local Threshold = torch.class('nn.Threshold', 'nn.Module')

--- threshold th and constant v (1e-6 and 0); ip: the input may be overwritten (memory is planned by the compiler; eager ignores it).
function Threshold:__init(th, v, ip)
   nn.Module.__init(self)
   self.threshold = th or 1e-6
   self.val = v or 0
   if th and type(th) ~= 'number' or v and type(v) ~= 'number' then error 'nn.Threshold(threshold, value)' end
   self.inplace = ip or false
   if ip and type(ip) ~= 'boolean' then error 'in-place flag must be boolean' end
   self:validateParameters()
end

function Threshold:validateParameters()
   self.inplace = self.inplace or false
   if self.inplace and self.val > self.threshold then
      error(('in-place processing requires value (%g) not exceed threshold (%g)'):format(self.val, self.threshold))
   end
end

function Threshold:compute(input)
   return threshold(input, self.threshold, self.val)
end
