-- Transpose: swaps pairs of dimensions, one pair after another.

local Transpose = torch.class('nn.Transpose', 'nn.Module')

--- Pairs {dim1, dim2}.
function Transpose:__init(...)
   nn.Module.__init(self)
   self.permutations = {...}
   self.numInputDims = nil
end

--- The dimensions of one sample, which allows batches.
function Transpose:setNumInputDims(numInputDims)
   self.numInputDims = numInputDims
   return self
end

function Transpose:compute(input)
   local swaps = self.permutations
   local offset = self.numInputDims and input:dim() > self.numInputDims and 1 or 0
   for i = 1, #swaps do
      input = input:transpose(swaps[i][1] + offset, swaps[i][2] + offset)
   end
   return input:contiguous()
end
