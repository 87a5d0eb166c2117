-- SpatialReplicationPadding: an image made larger, its edge pixels repeated.

local pad = require 'nn.pad'
local SpatialReplicationPadding = torch.class('nn.SpatialReplicationPadding', 'nn.Module')

--- Columns left, right, rows top, bottom; missing ones are as pad_l.
function SpatialReplicationPadding:__init(pad_l, pad_r, pad_t, pad_b)
   nn.Module.__init(self)
   self.pad_l = pad_l
   self.pad_r = pad_r or self.pad_l
   self.pad_t = pad_t or self.pad_l
   self.pad_b = pad_b or self.pad_l
end

function SpatialReplicationPadding:compute(input)
   return pad.image(input, pad.replicate, self.pad_l, self.pad_r, self.pad_t, self.pad_b)
end

function SpatialReplicationPadding:__tostring__()
   return torch.type(self) .. ('(l=%d, r=%d, t=%d, b=%d)'):format(self.pad_l, self.pad_r, self.pad_t, self.pad_b)
end
