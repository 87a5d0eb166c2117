-- L1Penalty: the identity that adds the L1 norm's gradient on the way back; the loss is left in `loss`.

local L1Penalty = torch.class('nn.L1Penalty', 'nn.Module')

--- l1weight: factor of the norm; sizeAverage (false): divide it by the number of elements; provideOutput (true): add to gradOutput.
function L1Penalty:__init(l1weight, sizeAverage, provideOutput)
   nn.Module.__init(self)
   self.l1weight = l1weight
   self.sizeAverage = sizeAverage or false
   self.provideOutput = provideOutput == nil or provideOutput
end

local function factor(self, input)
   return self.sizeAverage and self.l1weight / input:nElement() or self.l1weight
end

function L1Penalty:updateOutput(input)
   self.loss = factor(self, input) * torch.abs(input):sum()
   self.output = input
   return input
end

function L1Penalty:updateGradInput(input, gradOutput)
   self.gradInput:resizeAs(input):copy(input):sign():mul(factor(self, input))
   if self.provideOutput then self.gradInput:add(gradOutput) end
   return self.gradInput
end
