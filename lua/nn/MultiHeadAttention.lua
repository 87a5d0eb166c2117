-- MultiHeadAttention (Vaswani et al., 2017): projections around SelfAttention ((batch, n, d) -> (batch, n, d)).

local MultiHeadAttention = torch.class('nn.MultiHeadAttention', 'nn.Sequential')

--- d features, heads of d / heads each. causal: a place sees itself and those before.
function MultiHeadAttention:__init(d, heads, causal)
   nn.Sequential.__init(self)
   self:add(nn.Linear(d, 3 * d)):add(nn.SelfAttention(heads, causal)):add(nn.Linear(d, d))
end
