-- What poolings over regions of unequal or random place share: windows gathered by position, then their largest value.

local op = require('relume.core').op
local regions = {}

-- Long positions (planes, outs * size) of windows: starts (planes, outs) and, at most, lasts; positions past a last repeat it.
local function window(starts, size, lasts)
   local i = op.add(op.unsqueeze(starts, 2), op.iota(size, 'Long'))
   if lasts then i = op.minimum(i, op.unsqueeze(lasts, 2)) end
   return i:view(starts:size(1), starts:size(2) * size)
end

--- Largest values of x (n, c, size1, ..., sizek): for each of its last k dimensions axes[i] = {starts, size, lasts?}, with starts of
-- (1 or n c, outs). Ties share the gradient.
function regions.max(x, axes)
   local n, c, k = x:size(1), x:size(2), #axes
   local planes, total, rows = n * c, 1, nil
   for i = 1, k do total = total * x:size(i + 2) end
   local places, shape = nil, {planes}
   for i = 1, k do
      local starts, size, lasts = axes[i][1], axes[i][2], axes[i][3]
      local w = window(starts, size, lasts)
      rows = math.max(rows or 1, starts:size(1))
      if not places then
         places = w
      else
         local sum = op.add(op.unsqueeze(op.mul(places, x:size(i + 2)), 2), op.unsqueeze(w, 1))
         places = sum:view(sum:size(1), sum:size(2) * sum:size(3))
      end
      shape[#shape + 1], shape[#shape + 2] = starts:size(2), size
   end
   places = op.expand(places, {planes, places:size(2)})
   local values = op.gather(x:contiguous():view(planes, total), places, 1):view(unpack(shape))
   local dims, sizes = {}, {n, c}
   for i = 1, k do dims[i], sizes[i + 2] = 2 * i, shape[2 * i] end
   return op.amax(values, dims, false):view(unpack(sizes))
end

--- Axis of `outs` windows that divide n elements: from floor(i n / outs) to before ceil((i + 1) n / outs).
function regions.even(n, outs)
   local starts, lasts, size = {}, {}, 1
   for i = 0, outs - 1 do
      starts[i + 1], lasts[i + 1] = math.floor(i * n / outs), math.ceil((i + 1) * n / outs) - 1
      size = math.max(size, lasts[i + 1] - starts[i + 1] + 1)
   end
   return {torch.LongTensor {starts}, size, torch.LongTensor {lasts}}
end

--- Axis of `outs` windows of `size` over n elements at fractional steps (Graham, 2014); samples: (planes) in [0, 1).
function regions.fractional(n, outs, size, samples)
   local alpha = outs > 1 and (n - size) / (outs - 1) or 0
   local u = op.unsqueeze(samples, 1)
   local first = op.floor(op.mul(u, alpha))
   local starts = op.sub(op.floor(op.mul(op.add(u, op.iota(outs, (samples:type():match 'torch%.(%a+)Tensor'))), alpha)), first)
   local inner = op.slice(starts, 1, 0, outs - 1)
   local last = op.add(op.mul(first, 0), n - size)
   return {op.cast(outs > 1 and op.cat({inner, last}, 1) or last, 'Long'), size}
end

return regions
