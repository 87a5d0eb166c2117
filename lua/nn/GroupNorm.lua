-- GroupNorm (Wu and He, 2018): groups of planes to mean 0 and variance 1, then each plane scaled and shifted.

local group_norm = require('relume.core').op.group_norm
local GroupNorm = torch.class('nn.GroupNorm', 'nn.Module')

--- groups divides planes; eps (1e-5) is added to the variance; affine (true): learnt weight (starts at 1) and bias (0) a plane.
function GroupNorm:__init(groups, planes, eps, affine)
   nn.Module.__init(self)
   assert(planes % groups == 0, ('[GroupNorm] planes; got %d, need a multiple of %d'):format(planes, groups))
   self.groups = groups
   self.planes = planes
   self.eps = eps or 1e-5
   if affine == nil or affine then
      self.weight = torch.Tensor(planes)
      self.bias = torch.Tensor(planes)
      self.gradWeight = torch.Tensor(planes):zero()
      self.gradBias = torch.Tensor(planes):zero()
      self:reset()
   end
end

function GroupNorm:reset()
   if self.weight then
      self.weight:fill(1)
      self.bias:zero()
   end
end

-- input is (batch, planes, ...).
function GroupNorm:compute(input, weight, bias)
   return group_norm(input, weight, bias, self.groups, self.eps)
end

function GroupNorm:__tostring__()
   return ('%s(%d, %d)'):format(torch.type(self), self.groups, self.planes)
end
