-- Dropout (Srivastava et al., 2014): zeroes values at random in training, the others scaled up to keep the mean.

local dropout = require('relume.core').op.dropout
local Dropout = torch.class('nn.Dropout', 'nn.Module')

Dropout.__version = 2
Dropout.lastForward = true -- backward belongs to the last forward, whatever tensor holds the input

--- p (0.5): probability of a zero. v1: training does not scale, evaluation does. inplace: the input may be overwritten (memory is
-- planned by the compiler; eager ignores it). stochasticInference: drops in evaluate mode too.
function Dropout:__init(p, v1, inplace, stochasticInference)
   nn.Module.__init(self)
   self.p = p or 0.5
   self.train = true
   self.inplace = inplace
   self.stochastic_inference = stochasticInference or false
   self.v2 = not v1
   if self.p >= 1 or self.p < 0 then error '<Dropout> illegal percentage, must be 0 <= p < 1' end
   self.noise = torch.Tensor()
end

function Dropout:compute(input)
   local p = self.p
   if self.train == false and not self.stochastic_inference then
      return self.v2 and input * 1 or input * (1 - p)
   end
   if p <= 0 then return input * 1 end
   local y = dropout(input, p)
   return self.v2 and y or y * (1 - p)
end

--- Changes p.
function Dropout:setp(p)
   self.p = p
end

function Dropout:clearState()
   if self.noise then self.noise:set() end
   return nn.Module.clearState(self)
end

function Dropout:__tostring__()
   return ('%s(%f)'):format(torch.type(self), self.p)
end
