-- TransformerBlock (Vaswani et al., 2017; norms in front as in GPT-2): x + attention(norm(x)), then x + mlp(norm(x)) with 4 d hidden units.

local TransformerBlock = torch.class('nn.TransformerBlock', 'nn.Sequential')

local function residual(branch)
   return nn.Sequential()
      :add(nn.ConcatTable():add(nn.Identity()):add(branch))
      :add(nn.CAddTable())
end

--- d features, heads; causal: a place sees itself and those before; p (0): dropout at the end of both branches.
function TransformerBlock:__init(d, heads, causal, p)
   nn.Sequential.__init(self)
   local attention = nn.Sequential():add(nn.LayerNorm(d)):add(nn.MultiHeadAttention(d, heads, causal))
   local mlp = nn.Sequential():add(nn.LayerNorm(d)):add(nn.Linear(d, 4 * d)):add(nn.GELU()):add(nn.Linear(4 * d, d))
   if p and p > 0 then
      attention:add(nn.Dropout(p))
      mlp:add(nn.Dropout(p))
   end
   self:add(residual(attention)):add(residual(mlp))
end
