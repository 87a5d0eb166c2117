-- RReLU (Xu et al., 2015): x where x > 0, else x times a slope drawn for each element; evaluation uses the mean slope.

local op = require('relume.core').op
local RReLU = torch.class('nn.RReLU', 'nn.Module')

RReLU.lastForward = true -- backward belongs to the last forward, whatever tensor holds the input

--- Slopes uniform between l (1/8) and u (1/3); ip: the input may be overwritten (memory is planned by the compiler; eager ignores it).
function RReLU:__init(l, u, ip)
   nn.Module.__init(self)
   self.lower = l or 1 / 8
   self.upper = u or 1 / 3
   assert(self.lower <= self.upper and self.lower >= 0 and self.upper >= 0)
   self.noise = torch.Tensor()
   self.train = true
   self.inplace = ip or false
end

function RReLU:compute(input)
   local l, u = self.lower, self.upper
   if self.train == false then return op.leaky_relu(input, (l + u) / 2) end
   local slope = input.new(input:size()):uniform(l, u)
   return op.where(op.gt(input, 0), input, torch.cmul(input, slope))
end

function RReLU:clearState()
   if self.noise then self.noise:set() end
   return nn.Module.clearState(self)
end

function RReLU:__tostring__()
   return ('%s (l:%f, u:%f)'):format(torch.type(self), self.lower, self.upper)
end
