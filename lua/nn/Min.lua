-- Min: the smallest value along a dimension, which is dropped; constructed as Max.

local amin_dim = require('relume.core').op.amin_dim
local Min = torch.class('nn.Min', 'nn.Module')

for _, name in ipairs { '__init', '_getPositiveDimension', 'type' } do Min[name] = nn.Max[name] end

function Min:compute(input)
   local dim = self:_getPositiveDimension(input)
   return (amin_dim(input, dim - 1, input:dim() == 1))
end
