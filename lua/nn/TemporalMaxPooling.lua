-- TemporalMaxPooling: largest value of each window of frames ((frames, size), alone or in a batch).

local op = require('relume.core').op
local amax, unfold = op.amax, op.unfold
local TemporalMaxPooling = torch.class('nn.TemporalMaxPooling', 'nn.Module')

--- Windows of kW frames every dW (kW) frames.
function TemporalMaxPooling:__init(kW, dW)
   nn.Module.__init(self)
   self.kW = kW
   self.dW = dW or kW
end

function TemporalMaxPooling:compute(input)
   local d = input:dim()
   if d ~= 2 and d ~= 3 then error(('2D or 3D (batch mode) tensor expected; got %dD'):format(d), 0) end
   return amax(unfold(input, d - 2, self.kW, self.dW), {d}, false)
end

function TemporalMaxPooling:clearState()
   if self.indices then self.indices:set() end
   return nn.Module.clearState(self)
end
