-- Squeeze: removes dimensions of size 1.

local Squeeze = torch.class('nn.Squeeze', 'nn.Module')

--- dim: only that one; numInputDims: the dimensions of one sample, so that a batch dimension stays.
function Squeeze:__init(dim, numInputDims)
   nn.Module.__init(self)
   self.dim = dim
   self:setNumInputDims(numInputDims)
end

function Squeeze:setNumInputDims(numInputDims)
   self.numInputDims = numInputDims
   return self
end

function Squeeze:compute(input)
   local dim = self.dim
   local batch = self.numInputDims and input:dim() == self.numInputDims + 1
   if dim then
      return torch.squeeze(input, batch and dim + 1 or dim)
   end
   if not (batch and input:size(1) == 1) then return torch.squeeze(input) end
   local sizes = {1}
   for i = 2, input:dim() do
      if input:size(i) ~= 1 then sizes[#sizes + 1] = input:size(i) end
   end
   return input:contiguous():view(unpack(sizes))
end

function Squeeze:__tostring__()
   return torch.type(self) .. '(' .. (self.dim and 'dim ' .. self.dim or '') .. ')'
end
