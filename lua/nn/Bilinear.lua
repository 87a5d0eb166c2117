-- Bilinear: y_k = x1' W_k x2 + b_k ({x1, x2} -> y).

local Bilinear = torch.class('nn.Bilinear', 'nn.Module')

--- weight is (outputSize, inputSize1, inputSize2); bias (true).
function Bilinear:__init(inputSize1, inputSize2, outputSize, bias)
   nn.Module.__init(self)
   bias = bias == nil or bias
   self.weight = torch.Tensor(outputSize, inputSize1, inputSize2)
   self.gradWeight = torch.Tensor(outputSize, inputSize1, inputSize2)
   if bias then
      self.bias = torch.Tensor(outputSize)
      self.gradBias = torch.Tensor(outputSize)
   end
   self.gradInput = {torch.Tensor(), torch.Tensor()}
   self:reset()
end

function Bilinear:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.weight:size(2))
   self.weight:uniform(-stdv, stdv)
   if self.bias then self.bias:uniform(-stdv, stdv) end
   return self
end

-- x1 is (batch, in1), x2 (batch, in2).
function Bilinear:compute(input, weight, bias)
   local a, b = input[1], input[2]
   assert(a:dim() == 2 and b:dim() == 2 and a:size(1) == b:size(1), 'input should be two matrices with the same number of rows')
   local n, o, i, j = a:size(1), weight:size(1), weight:size(2), weight:size(3)
   local left = torch.mm(a, weight:permute(2, 1, 3):contiguous():view(i, o * j)):view(n, o, j)
   local y = torch.bmm(left, b:contiguous():view(n, j, 1)):view(n, o)
   return bias and y + bias:view(1, o):expandAs(y) or y
end

function Bilinear:__tostring__()
   return torch.type(self) .. ('(%dx%d -> %d) %s'):format(self.weight:size(2), self.weight:size(3), self.weight:size(1),
      self.bias == nil and ' without bias' or '')
end
