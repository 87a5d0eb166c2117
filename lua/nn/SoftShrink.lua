-- SoftShrink: x moved towards 0 by lambda, at most to 0.

local softshrink = require('relume.core').op.softshrink
local SoftShrink = torch.class('nn.SoftShrink', 'nn.Module')

--- lambda (0.5).
function SoftShrink:__init(lam)
   nn.Module.__init(self)
   self.lambda = lam or 0.5
end

function SoftShrink:compute(input)
   return softshrink(input, self.lambda)
end
