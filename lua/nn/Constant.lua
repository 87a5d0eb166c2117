-- Constant: a fixed tensor, whatever the input, repeated over the batch.

local Constant = torch.class('nn.Constant', 'nn.Module')

--- value: a number or tensor; nInputDim: the dimensions of one sample (needed for batches).
function Constant:__init(value, nInputDim)
   nn.Module.__init(self)
   self.value = value
   if torch.type(self.value) == 'number' then self.value = torch.Tensor {self.value} end
   assert(torch.isTensor(self.value), 'Expecting number or tensor at arg 1')
   self.nInputDim = nInputDim
end

function Constant:updateOutput(input)
   if self.nInputDim and input:dim() > self.nInputDim then
      local sizes, single = {}, {1}
      local extra = input:dim() - self.nInputDim
      for i = 1, extra do sizes[i], single[i] = input:size(i), 1 end
      for i = 1, self.value:dim() do sizes[extra + i], single[extra + i] = self.value:size(i), self.value:size(i) end
      self.output:resize(unpack(sizes)):copy(self.value:view(unpack(single)):expand(unpack(sizes)))
   else
      self.output:resize(self.value:size()):copy(self.value)
   end
   return self.output
end

function Constant:updateGradInput(input)
   self.gradInput:resizeAs(input):zero()
   return self.gradInput
end
