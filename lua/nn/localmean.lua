-- What the local normalisations share: the mean of a neighbourhood over all planes, weighted by a kernel and corrected at the borders.

local op = require('relume.core').op
local localmean = {}

--- The averaging kernel given, or 9 x 9 of ones; an error unless it is 1D or 2D of odd sizes.
function localmean.kernel(kernel, class)
   kernel = kernel or torch.Tensor(9, 9):fill(1)
   local d = kernel:dim()
   if d ~= 1 and d ~= 2 then error(('<%s> averaging kernel must be 2D or 1D'):format(class)) end
   for i = 1, d do
      if kernel:size(i) % 2 == 0 then error(('<%s> averaging kernel must have ODD dimensions'):format(class)) end
   end
   return kernel
end

--- f(weighted mean of x (batch, planes, height, width)) / (the same of ones) as (batch, 1, height, width); a 1D kernel k means k k^T.
function localmean.ratio(x, kernel, f)
   local planes = x:size(2)
   local k = kernel:dim() == 1 and torch.ger(kernel, kernel) or kernel
   local h, w = k:size(1), k:size(2)
   k = (k / (k:sum() * planes)):view(1, 1, h, w):expand(1, planes, h, w):contiguous()
   local pad = {(h - 1) / 2, (w - 1) / 2}
   local function mean(y) return op.conv2d(y, k, nil, {1, 1}, pad, {1, 1}, 1) end
   local coef = mean(x.new(1, planes, x:size(3), x:size(4)):fill(1))
   local m = mean(x)
   return op.div(f and f(m) or m, coef)
end

return localmean
