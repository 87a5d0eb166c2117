-- CosineDistance: cosine of the angle between two tensors, row by row ({x, y} -> (batch)).

local op = require('relume.core').op
local CosineDistance = torch.class('nn.CosineDistance', 'nn.Module')

function CosineDistance:__init()
   nn.Module.__init(self)
   self.gradInput = {}
end

function CosineDistance:compute(input)
   local x, y = input[1], input[2]
   if x:dim() == 1 then x, y = x:view(1, x:size(1)), y:view(1, y:size(1)) end
   local last = {1}
   local xy = op.sum(torch.cmul(x, y), last, false)
   local xx, yy = op.sum(torch.cmul(x, x), last, false) + 1e-12, op.sum(torch.cmul(y, y), last, false) + 1e-12
   return torch.cdiv(xy, torch.sqrt(torch.cmul(xx, yy)))
end
