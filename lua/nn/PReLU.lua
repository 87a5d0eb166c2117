-- PReLU: x where x > 0, else a learnt factor times x (He et al., 2015).

local op = require('relume.core').op
local where, gt, mul = op.where, op.gt, op.mul
local PReLU = torch.class('nn.PReLU', 'nn.Module')

--- nOutputPlane (0: one factor for all planes). Factors start at 0.25.
function PReLU:__init(nOutputPlane)
   nn.Module.__init(self)
   self.nOutputPlane = nOutputPlane or 0
   self.weight = torch.Tensor(nOutputPlane or 1):fill(0.25)
   self.gradWeight = torch.Tensor(nOutputPlane or 1)
end

-- The factors in the place of x's planes: (planes), (batch, planes), (planes, h, w) or (batch, planes, h, w).
local function fit(weight, x)
   local sizes, d = {}, x:dim()
   local plane = (d == 1 or d == 3) and 1 or 2
   for i = 1, d do sizes[i] = i == plane and weight:nElement() or 1 end
   return weight:view(unpack(sizes))
end

function PReLU:compute(input, weight)
   return where(gt(input, 0), input, mul(input, fit(weight, input)))
end
