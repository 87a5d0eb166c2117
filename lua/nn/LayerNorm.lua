-- LayerNorm (Ba et al., 2016): the last dimensions to mean 0 and variance 1, then scaled and shifted.

local layer_norm = require('relume.core').op.layer_norm
local LayerNorm = torch.class('nn.LayerNorm', 'nn.Module')

--- size: how many features the last dimension has; eps (1e-5) is added to the variance; affine (true): learnt weight (starts at 1) and
-- bias (0).
function LayerNorm:__init(size, eps, affine)
   nn.Module.__init(self)
   self.size = size
   self.eps = eps or 1e-5
   if affine == nil or affine then
      self.weight = torch.Tensor(size)
      self.bias = torch.Tensor(size)
      self.gradWeight = torch.Tensor(size):zero()
      self.gradBias = torch.Tensor(size):zero()
      self:reset()
   end
end

function LayerNorm:reset()
   if self.weight then
      self.weight:fill(1)
      self.bias:zero()
   end
end

function LayerNorm:compute(input, weight, bias)
   return (layer_norm(input, weight, bias, 1, self.eps))
end

function LayerNorm:__tostring__()
   return ('%s(%d)'):format(torch.type(self), self.size)
end
