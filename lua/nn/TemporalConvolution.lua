-- TemporalConvolution: convolution over a sequence of frames ((frames, inputFrameSize), alone or in a batch).

local op = require('relume.core').op
local linear, unfold, permute = op.linear, op.unfold, op.permute
local TemporalConvolution = torch.class('nn.TemporalConvolution', 'nn.Module')

--- Windows of kW frames every dW (1) frames. weight is (outputFrameSize, kW * inputFrameSize), frame after frame.
function TemporalConvolution:__init(inputFrameSize, outputFrameSize, kW, dW)
   nn.Module.__init(self)
   dW = dW or 1
   self.inputFrameSize = inputFrameSize
   self.outputFrameSize = outputFrameSize
   self.kW = kW
   self.dW = dW
   self.weight = torch.Tensor(outputFrameSize, inputFrameSize * kW)
   self.bias = torch.Tensor(outputFrameSize)
   self.gradWeight = torch.Tensor(outputFrameSize, inputFrameSize * kW):zero()
   self.gradBias = torch.Tensor(outputFrameSize):zero()
   self:reset()
end

function TemporalConvolution:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.kW * self.inputFrameSize)
   self.weight:uniform(-stdv, stdv)
   self.bias:uniform(-stdv, stdv)
end

function TemporalConvolution:compute(input, weight, bias)
   local d, n = input:dim(), self.outputFrameSize
   if d ~= 2 and d ~= 3 then error(('2D or 3D (batch mode) tensor expected; got %dD'):format(d), 0) end
   if input:size(d) ~= self.inputFrameSize then
      error(('[TemporalConvolution] input frame size; got %d, need %d'):format(input:size(d), self.inputFrameSize), 0)
   end
   if input:size(d - 1) < self.kW then
      error(('[TemporalConvolution] input frames; got %d, need at least %d'):format(input:size(d - 1), self.kW), 0)
   end
   -- (..., windows, frame size, kW) -> rows of kW frames.
   local w = unfold(input, d - 2, self.kW, self.dW)
   local rows = permute(w, d == 2 and {0, 2, 1} or {0, 1, 3, 2}):contiguous():view(-1, self.kW * self.inputFrameSize)
   local y = linear(rows, weight, bias)
   if d == 2 then return y end
   return y:view(input:size(1), w:size(2), n)
end
