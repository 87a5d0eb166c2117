-- Unsqueeze: puts in a dimension of size 1.

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
   local sizes = {}
   for i = 1, pos - 1 do sizes[i] = input:size(i) end
   sizes[pos] = 1
   for i = pos, input:dim() do sizes[i + 1] = input:size(i) end
   return input:contiguous():view(unpack(sizes))
end

function Unsqueeze:__tostring__()
   return torch.type(self) .. '(dim ' .. self.pos .. ')'
end
