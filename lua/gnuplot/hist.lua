-- Histograms: counts in equal bins, and their picture in text (tensor -> {val, nb} per bin).
local torch = require 'torch'

-- Columns of the counts, `height` lines, over the values of some bins.
local function picture(h, height)
   height = height or 10
   local most, out = math.max(h[h.max].nb, 1), {}
   out[1] = ('nsamples:  min:(bin:%d/#%d/cntr:%2.2f)  max:(bin:%d/#%d/cntr:%2.2f)'):format(h.min, h[h.min].nb, h[h.min].val, h.max, h[h.max].nb, h[h.max].val)
   for line = height, 1, -1 do
      local row = {('%1.2e:'):format(most * line / height)}
      for i = 1, #h do row[i + 1] = h[i].nb >= most * line / height and '|' or h[i].nb > most * (line - 0.5) / height and '.' or ' ' end
      out[#out + 1] = table.concat(row)
   end
   local axis = {}
   for i = 1, #h do axis[i] = (i - 2) % 6 == 0 and '^' or '-' end
   out[#out + 1] = '--------:' .. table.concat(axis)
   local centers = {'centers '}
   for i = 2, #h, 6 do centers[#centers + 1] = ('%+1.2f '):format(h[i].val) end
   out[#out + 1] = table.concat(centers)
   return table.concat(out, '\n')
end

--- histc(tensor [, bins [, min [, max [, raw]]]]): bins with .val (their middle) and .nb (count), .raw, .binwidth, .max and .min (fullest and
-- emptiest bin); raw gives the counts as a tensor only.
return function(tensor, bins, min, max, raw)
   if not torch.isTensor(tensor) then error('[gnuplot] histogram; got ' .. torch.type(tensor) .. ', need a tensor', 2) end
   bins, min, max = bins or 72, min or tensor:min(), max or tensor:max()
   local counts = torch.histc(tensor:double(), bins, min, max)
   if raw then return counts end
   local h = {raw = counts, bins = bins, binwidth = (max - min) / bins, min = 1, max = 1}
   for i = 1, bins do
      h[i] = {val = min + (i - 0.5) * h.binwidth, nb = counts[i]}
      if counts[i] > counts[h.max] then h.max = i end
      if counts[i] < counts[h.min] then h.min = i end
   end
   return setmetatable(h, {__tostring = picture})
end
