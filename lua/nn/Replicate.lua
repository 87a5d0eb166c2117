-- Replicate: repeats the input along a new dimension, without copying.

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
   local single, sizes = {}, {}
   for i = 1, input:dim() do
      local k = i < at and i or i + 1
      single[k], sizes[k] = input:size(i), input:size(i)
   end
   single[at], sizes[at] = 1, self.nfeatures
   return input:contiguous():view(unpack(single)):expand(unpack(sizes))
end
