-- FeatureLPPooling: p-norm of windows of neighbouring features ((features, ...), or (batch, features, ...) in batch mode).

local op = require('relume.core').op
local FeatureLPPooling = torch.class('nn.FeatureLPPooling', 'nn.Module')

--- Windows of width (at least 2) features every stride (1 to 4 in the original); power of the norm; batch_mode (false).
function FeatureLPPooling:__init(width, stride, power, batch_mode)
   nn.Module.__init(self)
   if width < 2 then error 'width must be >= 2' end
   if stride < 1 then error 'stride must be >= 1' end
   self.width, self.stride, self.power = width, stride, power
   self.batch_mode = batch_mode or false
end

function FeatureLPPooling:compute(input)
   local d = self.batch_mode and 1 or 0
   local windows = op.unfold(op.pow(input, self.power), d, self.width, self.stride)
   local sum = op.sum(windows, {input:dim()}, false)
   local zero = op.eq(sum, 0) -- where the norm has no derivative: 0 there
   return op.where(zero, 0, op.pow(op.where(zero, 1, sum), 1 / self.power))
end
