-- PixelShuffle (Shi et al., 2016): planes become pixels ((n, c r r, h, w) -> (n, c, h r, w r)).

local conv = require 'nn.conv'
local PixelShuffle = torch.class('nn.PixelShuffle', 'nn.Module')

function PixelShuffle:__init(upscaleFactor)
   nn.Module.__init(self)
   self.upscaleFactor = upscaleFactor
   self.upscaleFactorSquared = upscaleFactor * upscaleFactor
end

function PixelShuffle:compute(input)
   local x, single = conv.batch(input, 3)
   local r, n, h, w = self.upscaleFactor, x:size(1), x:size(3), x:size(4)
   local c = x:size(2) / self.upscaleFactorSquared
   local y = x:contiguous():view(n, c, r, r, h, w):permute(1, 2, 5, 3, 6, 4):contiguous():view(n, c, h * r, w * r)
   return conv.unbatch(y, single)
end
