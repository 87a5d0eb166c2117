-- SpatialReflectionPadding: an image made larger, mirrored at its edges.

local pad = require 'nn.pad'
local SpatialReflectionPadding = torch.class('nn.SpatialReflectionPadding', 'nn.Module')

--- Columns left, right, rows top, bottom; missing ones are as pad_l.
function SpatialReflectionPadding:__init(pad_l, pad_r, pad_t, pad_b)
   nn.Module.__init(self)
   self.pad_l = pad_l
   self.pad_r = pad_r or self.pad_l
   self.pad_t = pad_t or self.pad_l
   self.pad_b = pad_b or self.pad_l
end

function SpatialReflectionPadding:compute(input)
   return pad.image(input, pad.reflect, self.pad_l, self.pad_r, self.pad_t, self.pad_b)
end

function SpatialReflectionPadding:__tostring__()
   return torch.type(self) .. ('(l=%d, r=%d, t=%d, b=%d)'):format(self.pad_l, self.pad_r, self.pad_t, self.pad_b)
end
