-- TemporalDynamicKMaxPooling (Kalchbrenner et al., 2014): the k largest values of each feature, in their order ((frames, size) or a batch).

local op = require('relume.core').op
local TemporalDynamicKMaxPooling = torch.class('nn.TemporalDynamicKMaxPooling', 'nn.Module')

--- k is the larger of minK and ceil(factor * frames); factor (0).
function TemporalDynamicKMaxPooling:__init(minK, factor)
   nn.Module.__init(self)
   self.minK = minK
   self.factor = factor or 0
end

function TemporalDynamicKMaxPooling:compute(input)
   local d = input:dim()
   if d ~= 2 and d ~= 3 then error(('2D or 3D (batch mode) tensor expected; got %dD'):format(d), 0) end
   local frames = input:size(d - 1)
   local k = math.max(self.minK, math.ceil(self.factor * frames))
   if frames < k then error(('[TemporalDynamicKMaxPooling] frames; got %d, need at least %d'):format(frames, k), 0) end
   local _, places = op.topk(input:detach(), k, d - 2, true, true)
   return op.gather(input, (op.sort(places, d - 2, false)), d - 2)
end
