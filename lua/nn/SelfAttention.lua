-- SelfAttention (Vaswani et al., 2017): heads that weigh a sequence's values by its queries and keys ((batch, n, 3 d) -> (batch, n, d)).

local attention = require('relume.core').op.attention
local SelfAttention = torch.class('nn.SelfAttention', 'nn.Module')

--- heads divides d; the input holds queries, keys and values side by side. causal: a place sees itself and those before.
function SelfAttention:__init(heads, causal)
   nn.Module.__init(self)
   self.heads = heads
   self.causal = causal or false
end

function SelfAttention:compute(input)
   local b, n, d = input:size(1), input:size(2), input:size(3) / 3
   local h = self.heads
   if input:dim() ~= 3 or d % h ~= 0 then
      error(('[SelfAttention] input; got %s, need (batch, n, 3 d) with d a multiple of %d heads'):format(
         table.concat(input:size():totable(), 'x'), h), 0)
   end
   local parts = input:contiguous():view(b, n, 3, h, d / h):permute(3, 1, 4, 2, 5):contiguous():view(3, b * h, n, d / h)
   local y = attention(parts:select(1, 1), parts:select(1, 2), parts:select(1, 3), nil, self.causal, 0)
   return y:view(b, h, n, d / h):transpose(2, 3):contiguous():view(b, n, d)
end

function SelfAttention:__tostring__()
   return ('%s(%d%s)'):format(torch.type(self), self.heads, self.causal and ', causal' or '')
end
