-- Add: a learnt bias vector (or one number) added to the input.

local Add = torch.class('nn.Add', 'nn.Module')

--- inputSize numbers; with scalar true one number for all.
function Add:__init(inputSize, scalar)
   nn.Module.__init(self)
   local size = scalar and 1 or inputSize
   self.scalar = scalar
   self.bias = torch.Tensor(size)
   self.gradBias = torch.Tensor(size)
   self._ones = torch.Tensor {1}
   self:reset()
end

function Add:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.bias:size(1))
   self.bias:uniform(-stdv, stdv)
end

-- input is (inputSize ...) for one sample, (batch, inputSize) or any (batch, ...) of as many elements.
function Add:compute(input, _, bias)
   local n = bias:size(1)
   if n == 1 then return input + bias:view(1):expandAs(input) end
   if input:nElement() == n then return input + bias:viewAs(input) end
   local batch = input:size(1)
   local rows = input:contiguous():view(batch, -1)
   return (rows + bias:view(1, n):expandAs(rows)):viewAs(input)
end
