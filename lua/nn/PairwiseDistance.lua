-- PairwiseDistance: p-norm of the difference of two tensors, row by row ({x, y} -> (batch)).

local op = require('relume.core').op
local PairwiseDistance = torch.class('nn.PairwiseDistance', 'nn.Module')

function PairwiseDistance:__init(p)
   nn.Module.__init(self)
   self.gradInput = {}
   self.norm = p or 2
end

function PairwiseDistance:compute(input)
   local d = torch.abs(input[1] - input[2])
   if d:dim() == 1 then d = d:view(1, d:size(1)) end
   assert(d:dim() == 2, 'Input must be vector or matrix')
   if self.norm == 2 then return torch.sqrt(op.sum(torch.cmul(d, d), {1}, false)) end
   return torch.pow(op.sum(torch.pow(d, self.norm), {1}, false), 1 / self.norm)
end
