-- PositionalEmbedding: adds a learnt row to each place of a sequence ((batch, n, d) -> the same size).

local op = require('relume.core').op
local add, slice = op.add, op.slice
local PositionalEmbedding = torch.class('nn.PositionalEmbedding', 'nn.Module')

--- Rows for up to length places of d features, normal with mean 0 and deviation 1.
function PositionalEmbedding:__init(length, d)
   nn.Module.__init(self)
   self.weight = torch.Tensor(length, d)
   self.gradWeight = torch.Tensor(length, d):zero()
   self:reset()
end

function PositionalEmbedding:reset(stdv)
   self.weight:normal(0, stdv or 1)
   return self
end

function PositionalEmbedding:compute(input, weight)
   local n = input:size(2)
   if n > weight:size(1) then
      error(('[PositionalEmbedding] places; got %d, need at most %d'):format(n, weight:size(1)), 0)
   end
   return add(input, slice(weight, 0, 0, n))
end

function PositionalEmbedding:__tostring__()
   return ('%s(%d, %d)'):format(torch.type(self), self.weight:size(1), self.weight:size(2))
end
