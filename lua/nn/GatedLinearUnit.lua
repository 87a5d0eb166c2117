-- GatedLinearUnit (Dauphin et al., 2016): one half of the input times the sigmoid of the other.

local GatedLinearUnit = torch.class('nn.GatedLinearUnit', 'nn.Module')

--- dim: the dimension that is halved (default: the last).
function GatedLinearUnit:__init(dim)
   nn.Module.__init(self)
   self.dim = dim
end

function GatedLinearUnit:compute(input)
   local dim = self.dim or input:dim()
   local n = input:size(dim) / 2
   return torch.cmul(input:narrow(dim, 1, n), torch.sigmoid(input:narrow(dim, n + 1, n)))
end
