-- What the up-samplings share: one dimension stretched, linearly or to the nearest.

local op = require('relume.core').op
local resample = {}

--- x stretched along dimension d (from 0) to `size` elements, both ends kept, values between by straight lines: a product with a matrix of
-- triangles, max(0, 1 - |i (n - 1) / (size - 1) - j|).
function resample.linear(x, d, size)
   local n, last = x:size(d + 1), x:dim() - 1
   local kind = x:type():match 'torch%.(%a+)Tensor'
   local places = op.mul(op.iota(size, kind), size > 1 and (n - 1) / (size - 1) or 0)
   local weights = op.relu(op.sub(1, op.abs(op.sub(op.unsqueeze(places, 0), op.unsqueeze(op.iota(n, kind), 1)))))
   local t = op.transpose(x, d, last):contiguous()
   local sizes = t:size():totable()
   sizes[last + 1] = size
   local y = op.matmul(t:view(t:nElement() / n, n), weights):view(unpack(sizes))
   return op.transpose(y, d, last):contiguous()
end

--- Every element along d repeated scale times.
function resample.nearest(x, d, scale)
   local i = op.trunc(op.div(op.iota(x:size(d + 1) * scale, 'Long'), scale))
   return op.index_select(x, i, d)
end

return resample
