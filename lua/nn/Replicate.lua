-- Replicate: repeats the input along a new dimension, without copying.

local op = require('relume.core').op
local unsqueeze, expand = op.unsqueeze, op.expand
local Replicate = torch.class('nn.Replicate', 'nn.Module')

--- nf times along new dimension dim (default 1); ndim: the dimensions of one sample, which allows batches.
function Replicate:__init(nf, dim, ndim)
   nn.Module.__init(self)
   self.nfeatures = nf
   self.dim = dim or 1
   self.ndim = ndim
   assert(self.dim > 0, 'Can only replicate across positive integer dimensions.')
end

function Replicate:compute(input)
   local at = self.dim or 1
   if self.ndim and input:dim() > self.ndim then at = at + input:dim() - self.ndim end
   local sizes = {}
   for i = 1, input:dim() do sizes[i < at and i or i + 1] = input:size(i) end
   sizes[at] = self.nfeatures
   return expand(unsqueeze(input, at - 1), sizes)
end
