-- Unsqueeze: puts in a dimension of size 1.

local unsqueeze = require('relume.core').op.unsqueeze
local Unsqueeze = torch.class('nn.Unsqueeze', 'nn.Module')

--- pos: where, from 1; numInputDims: the dimensions of one sample, which allows batches.
function Unsqueeze:__init(pos, numInputDims)
   nn.Module.__init(self)
   self.pos = pos or error('the position to insert singleton dim not specified')
   self:setNumInputDims(numInputDims)
end

function Unsqueeze:setNumInputDims(numInputDims)
   self.numInputDims = numInputDims
   return self
end

function Unsqueeze:_getActualPosition(input)
   local pos = self.numInputDims and self.pos + input:dim() - self.numInputDims or self.pos
   assert(pos >= 1, 'Invalid position: ' .. pos)
   return pos
end

function Unsqueeze:compute(input)
   local pos = self:_getActualPosition(input)
   return unsqueeze(input, pos - 1)
end

function Unsqueeze:__tostring__()
   return torch.type(self) .. '(dim ' .. self.pos .. ')'
end
