-- VolumetricMaxUnpooling: values back at the places that a VolumetricMaxPooling took them from, 0 elsewhere.

local conv, volume = require 'nn.conv', require 'nn.volume'
local VolumetricMaxUnpooling = torch.class('nn.VolumetricMaxUnpooling', 'nn.Module')

--- poolingModule: the pooling whose last forward says where.
function VolumetricMaxUnpooling:__init(poolingModule)
   nn.Module.__init(self)
   assert(torch.isTypeOf(poolingModule, 'nn.VolumetricMaxPooling'), 'Argument must be a nn.VolumetricMaxPooling module')
   poolingModule.keepIndices = true
   self.pooling = poolingModule
end

function VolumetricMaxUnpooling:compute(input)
   local pooling = self.pooling
   if not pooling.planeIndices then error('[VolumetricMaxUnpooling] indices; got none, need a forward of the pooling module', 0) end
   local x, single = conv.batch(input, 4)
   return conv.unbatch(volume.maxUnpool(x, pooling.planeIndices, pooling.timeIndices, {pooling.itime, pooling.iheight, pooling.iwidth}),
      single)
end
