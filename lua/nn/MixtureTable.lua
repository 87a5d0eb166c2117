-- MixtureTable: experts weighted by a gater ({gates (batch, k), {expert1, ... expertk}} or {gates, experts (batch, ..., k, ...)} -> mixture).

local op = require('relume.core').op
local MixtureTable = torch.class('nn.MixtureTable', 'nn.Module')

--- dim: the dimension of a tensor of experts that counts them (default 2 in a batch).
function MixtureTable:__init(dim)
   nn.Module.__init(self)
   self.dim = dim
   self.gradInput = {}
end

-- Column k of the gates as a factor for expert.
local function gate(gates, k, expert)
   if gates:dim() == 1 then return gates:narrow(1, k, 1):view(1) end
   local sizes = {gates:size(1)}
   for i = 2, expert:dim() do sizes[i] = 1 end
   return gates:select(2, k):contiguous():view(unpack(sizes))
end

function MixtureTable:compute(input)
   local gates, experts = input[1], input[2]
   local list = experts
   if type(experts) ~= 'table' then
      local dim = self.dim or gates:dim()
      list = {}
      for k = 1, experts:size(dim) do list[k] = experts:select(dim, k) end
   end
   local sum
   for k = 1, #list do
      local part = op.mul(list[k], gate(gates, k, list[k]))
      sum = sum and sum + part or part
   end
   return sum
end
