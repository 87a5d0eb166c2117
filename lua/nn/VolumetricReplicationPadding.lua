-- VolumetricReplicationPadding: a volume made larger, its edge repeated ((planes, time, height, width), alone or in a batch).

local pad = require 'nn.pad'
local conv = require 'nn.conv'
local index_select = require('relume.core').op.index_select
local VolumetricReplicationPadding = torch.class('nn.VolumetricReplicationPadding', 'nn.Module')

--- Added left, right, at the top, bottom, front and back (all pleft where only that is given).
function VolumetricReplicationPadding:__init(pleft, pright, ptop, pbottom, pfront, pback)
   nn.Module.__init(self)
   self.pleft = pleft
   self.pright, self.ptop, self.pbottom = pright or pleft, ptop or pleft, pbottom or pleft
   self.pfront, self.pback = pfront or pleft, pback or pleft
end

function VolumetricReplicationPadding:compute(input)
   local x, single = conv.batch(input, 4)
   local sides = {{self.pfront, self.pback}, {self.ptop, self.pbottom}, {self.pleft, self.pright}}
   for i = 1, 3 do x = index_select(x, pad.replicate(x:size(i + 2), sides[i][1], sides[i][2]), i + 1) end
   return conv.unbatch(x, single)
end

function VolumetricReplicationPadding:__tostring__()
   return ('%s(l=%d, r=%d, t=%d, b=%d, f=%d, b=%d)'):format(torch.type(self), self.pleft, self.pright, self.ptop, self.pbottom,
      self.pfront, self.pback)
end
