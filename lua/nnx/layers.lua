-- Layers: nn.Minus, nn.SpatialLinear, nn.SpatialPadding, nn.FunctionWrapper.

local op = require('relume.core').op
local conv = require 'nn.conv'

--- -x.
local Minus = torch.class('nn.Minus', 'nn.Module')
function Minus:compute(input) return op.neg(input) end

local SpatialLinear = torch.class('nn.SpatialLinear', 'nn.Module')

--- A linear layer on the planes of every pixel: (fanin, h, w) -> (fanout, h, w), batches allowed.
function SpatialLinear:__init(fanin, fanout)
   nn.Module.__init(self)
   self.fanin, self.fanout, self.weightDecay = fanin or 1, fanout or 1, 0
   self.weight, self.gradWeight = torch.Tensor(self.fanout, self.fanin), torch.zeros(self.fanout, self.fanin)
   self.bias, self.gradBias = torch.Tensor(self.fanout), torch.zeros(self.fanout)
   self:reset()
end

function SpatialLinear:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.fanout)
   self.weight:uniform(-stdv, stdv)
   self.bias:uniform(-stdv, stdv)
end

function SpatialLinear:compute(input, weight, bias)
   local x, single = conv.batch(input, 3)
   local n, h, w = x:size(1), x:size(3), x:size(4)
   local rows = x:transpose(2, 3):transpose(3, 4):contiguous():view(n * h * w, self.fanin)
   local y = (rows * weight:t() + bias:view(1, self.fanout)):view(n, h, w, self.fanout)
   return conv.unbatch(y:transpose(3, 4):transpose(2, 3):contiguous(), single)
end

--- Subtracts the part `decay` of the parameters.
function SpatialLinear:decayParameters(decay)
   self.weight:mul(1 - decay)
   self.bias:mul(1 - decay)
end

local SpatialPadding = torch.class('nn.SpatialPadding', 'nn.Module')

--- `val` around an image along the dimensions y_dim and x_dim; negative widths cut.
function SpatialPadding:__init(pad_l, pad_r, pad_t, pad_b, y_dim, x_dim, val)
   nn.Module.__init(self)
   if not pad_l then error('[SpatialPadding] left padding; got nil, need a number', 3) end
   self.pad_l, self.pad_r, self.pad_t, self.pad_b = pad_l, pad_r or pad_l, pad_t or pad_l, pad_b or pad_l
   self.y_dim, self.x_dim, self.val = y_dim or 2, x_dim or 3, val or 0
end

function SpatialPadding:compute(input)
   local before, after = {}, {}
   for i = 1, input:dim() do before[i], after[i] = 0, 0 end
   before[self.y_dim], after[self.y_dim] = self.pad_t, self.pad_b
   before[self.x_dim], after[self.x_dim] = self.pad_l, self.pad_r
   return op.pad(input, before, after, self.val)
end

local FunctionWrapper = torch.class('nn.FunctionWrapper', 'nn.Module')

--- A module from three functions that get the module first: init(self), updateOutput(self, input), updateGradInput(self, input, gradOutput).
function FunctionWrapper:__init(init, updateOutput, updateGradInput)
   nn.Module.__init(self)
   if type(init) ~= 'function' or type(updateOutput) ~= 'function' or type(updateGradInput) ~= 'function' then
      error('[FunctionWrapper] need three functions: init, updateOutput, updateGradInput', 3)
   end
   self._updateOutput, self._updateGradInput = updateOutput, updateGradInput
   init(self)
end

function FunctionWrapper:updateOutput(input)
   self.output = self._updateOutput(self, input)
   return self.output
end

function FunctionWrapper:updateGradInput(input, gradOutput)
   self.gradInput = self._updateGradInput(self, input, gradOutput)
   return self.gradInput
end
