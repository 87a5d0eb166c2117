-- SinusoidalEmbedding (Vaswani et al., 2017): numbers as sines and cosines of falling frequency ((batch) -> (batch, size)).

local op = require('relume.core').op
local SinusoidalEmbedding = torch.class('nn.SinusoidalEmbedding', 'nn.Module')

--- size / 2 sines, then as many cosines, of t / base^(i / (size / 2)); base (10000).
function SinusoidalEmbedding:__init(size, base)
   nn.Module.__init(self)
   assert(size % 2 == 0, ('[SinusoidalEmbedding] size; got %d, need an even number'):format(size))
   self.size = size
   self.base = base or 10000
end

function SinusoidalEmbedding:compute(input)
   local half = self.size / 2
   local places = op.iota(half, (input:type():match 'torch%.(%a+)Tensor'))
   local angles = op.mul(op.unsqueeze(input, 1), op.exp(op.mul(places, -math.log(self.base) / half)))
   return op.cat({op.sin(angles), op.cos(angles)}, 1)
end
