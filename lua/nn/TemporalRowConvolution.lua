-- TemporalRowConvolution (Amodei et al., 2015): every feature convolved over time alone ((frames, size), alone or in a batch).

local conv = require 'nn.conv'
local op = require('relume.core').op
local TemporalRowConvolution = torch.class('nn.TemporalRowConvolution', 'nn.Module')

--- Windows of kW frames every dW (1); featFirst: the input is (size, frames). weight is (inputFrameSize, 1, kW).
function TemporalRowConvolution:__init(inputFrameSize, kW, dW, featFirst)
   nn.Module.__init(self)
   self.inputFrameSize, self.kW, self.dW = inputFrameSize, kW, dW or 1
   self.weight, self.gradWeight = torch.Tensor(inputFrameSize, 1, kW), torch.Tensor(inputFrameSize, 1, kW):zero()
   self.bias, self.gradBias = torch.Tensor(inputFrameSize), torch.Tensor(inputFrameSize):zero()
   self.featFirst = featFirst and true or false
   self:reset()
end

TemporalRowConvolution.noBias = conv.noBias

function TemporalRowConvolution:reset(stdv)
   return conv.reset(self, self.kW * self.inputFrameSize, stdv)
end

function TemporalRowConvolution:compute(input, weight, bias)
   local x, single = conv.batch(input, 2)
   if not self.featFirst then x = op.transpose(x, 1, 2) end
   local n, size = x:size(1), self.inputFrameSize
   if x:size(2) ~= size then error(('[TemporalRowConvolution] features; got %d, need %d'):format(x:size(2), size), 0) end
   local y = op.conv2d(x:contiguous():view(n, size, 1, x:size(3)), weight:view(size, 1, 1, self.kW), bias, {1, self.dW}, {0, 0}, {1, 1}, size)
   y = y:view(n, size, y:size(4))
   if not self.featFirst then y = op.transpose(y, 1, 2):contiguous() end
   return conv.unbatch(y, single)
end

function TemporalRowConvolution:__tostring__()
   return ('%s(%d, %d%s)%s'):format(torch.type(self), self.inputFrameSize, self.kW, self.dW ~= 1 and ', ' .. self.dW or '',
      self.bias and '' or ' without bias')
end
