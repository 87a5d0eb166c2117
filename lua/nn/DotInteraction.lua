-- DotInteraction (Naumov et al., 2019): products of all pairs of n vectors ((batch, n, d) -> (batch, n (n - 1) / 2)).

local op = require('relume.core').op
local DotInteraction = torch.class('nn.DotInteraction', 'nn.Module')

--- n vectors a sample; pairs (2, 1), (3, 1), (3, 2), (4, 1) ...
function DotInteraction:__init(n)
   nn.Module.__init(self)
   self.n = n
   local places = {}
   for i = 1, n - 1 do
      for j = 0, i - 1 do places[#places + 1] = i * n + j end
   end
   self.index = torch.LongTensor(places)
end

function DotInteraction:compute(input)
   local n = self.n
   if input:dim() ~= 3 or input:size(2) ~= n then
      error(('[DotInteraction] input; got %s, need (batch, %d, d)'):format(table.concat(input:size():totable(), 'x'), n), 0)
   end
   local products = op.matmul(input, op.transpose(input, 1, 2))
   return op.index_select(products:view(input:size(1), n * n), self.index, 1)
end

-- The index stays integers.
function DotInteraction:type(type, tensorCache)
   local index = self.index
   self.index = nil
   local result = nn.Module.type(self, type, tensorCache)
   self.index = type and index:type(type:find '^torch%.Cuda' and 'torch.CudaLongTensor' or 'torch.LongTensor') or index
   return result
end
