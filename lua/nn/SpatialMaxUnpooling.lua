-- SpatialMaxUnpooling: values back at the places that a SpatialMaxPooling took them from, 0 elsewhere.

local conv = require 'nn.conv'
local op = require('relume.core').op
local SpatialMaxUnpooling = torch.class('nn.SpatialMaxUnpooling', 'nn.Module')

--- poolingModule: the pooling whose last forward says where.
function SpatialMaxUnpooling:__init(poolingModule)
   nn.Module.__init(self)
   assert(torch.isTypeOf(poolingModule, 'nn.SpatialMaxPooling'), 'Argument must be a nn.SpatialMaxPooling module')
   poolingModule.keepIndices = true
   self.pooling = poolingModule
end

function SpatialMaxUnpooling:compute(input)
   local pooling = self.pooling
   local indices = pooling.indices
   if indices:nElement() ~= input:nElement() then
      error('[SpatialMaxUnpooling] indices; got those of another input, need a forward of the pooling module', 0)
   end
   local x, single = conv.batch(input, 3)
   return conv.unbatch(op.max_pool2d_dx(x, op.sub(indices:viewAs(x), 1), {pooling.iheight, pooling.iwidth}), single)
end

function SpatialMaxUnpooling:__tostring__()
   return 'nn.SpatialMaxUnpooling associated to ' .. tostring(self.pooling)
end
