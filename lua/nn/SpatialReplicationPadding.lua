-- SpatialReplicationPadding: an image made larger, its edge pixels repeated; constructed as SpatialReflectionPadding.

local pad = require 'nn.pad'
local SpatialReplicationPadding = torch.class('nn.SpatialReplicationPadding', 'nn.Module')

for _, name in ipairs { '__init', '__tostring__' } do SpatialReplicationPadding[name] = nn.SpatialReflectionPadding[name] end

function SpatialReplicationPadding:compute(input)
   return pad.image(input, pad.replicate, self.pad_l, self.pad_r, self.pad_t, self.pad_b)
end
