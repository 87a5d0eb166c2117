-- Attention: torch.attention over the op table's row (queries, keys, values -> weighted values).
local C = require 'relume.core'
local torch = C.torch
local attention = C.op.attention

-- (batch, heads, n, d) as (batch * heads, n, d).
local function merge(x)
   if x:dim() == 3 then return x end
   return x:contiguous():view(x:size(1) * x:size(2), x:size(3), x:size(4))
end

--- Scaled dot-product attention (Vaswani et al., 2017): softmax(scale q k^T + mask) v.
-- q is (batch, m, d), k (batch, n, d), v (batch, n, e), or all with heads: (batch, heads, m, d) ...; the result is (batch, m, e) or
-- (batch, heads, m, e). mask (nil: none) is added to the scores, which are (batch, m, n). causal: query i sees the keys up to i.
-- scale: 1 / sqrt(d) unless given.
function torch.attention(q, k, v, mask, causal, scale)
   local d = q:dim()
   if d ~= 3 and d ~= 4 or k:dim() ~= d or v:dim() ~= d then
      error(('[attention] q, k, v; got %d, %d and %d dimensions, need 3, or 4 with heads, of all'):format(d, k:dim(), v:dim()), 2)
   end
   if d == 3 then return (attention(q, k, v, mask, causal or false, scale or 0)) end
   local y = attention(merge(q), merge(k), merge(v), mask and merge(mask), causal or false, scale or 0)
   return y:view(q:size(1), q:size(2), q:size(3), v:size(4))
end

return torch.attention
