-- SpatialZeroPadding: zeros around an image; negative numbers cut.

local pad = require('relume.core').op.pad
local SpatialZeroPadding = torch.class('nn.SpatialZeroPadding', 'nn.Module')

--- Columns left, right, rows top, bottom; missing ones are as pad_l.
function SpatialZeroPadding:__init(pad_l, pad_r, pad_t, pad_b)
   nn.Module.__init(self)
   self.pad_l = pad_l
   self.pad_r = pad_r or self.pad_l
   self.pad_t = pad_t or self.pad_l
   self.pad_b = pad_b or self.pad_l
end

function SpatialZeroPadding:compute(input)
   local before, after, d = {}, {}, input:dim()
   for i = 1, d do before[i], after[i] = 0, 0 end
   before[d - 1], after[d - 1] = self.pad_t, self.pad_b
   before[d], after[d] = self.pad_l, self.pad_r
   return pad(input, before, after, 0)
end

function SpatialZeroPadding:__tostring__()
   return torch.type(self) .. ('(l=%d, r=%d, t=%d, b=%d)'):format(self.pad_l, self.pad_r, self.pad_t, self.pad_b)
end
