-- VolumetricDropout: SpatialDropout for volumes; planes have three dimensions.

local VolumetricDropout = torch.class('nn.VolumetricDropout', 'nn.Module')

for _, name in ipairs { 'lastForward', '__init', 'compute', 'setp', 'clearState', '__tostring__' } do
   VolumetricDropout[name] = nn.SpatialDropout[name]
end
VolumetricDropout.planeDims = 3
