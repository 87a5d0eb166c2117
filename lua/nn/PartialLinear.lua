-- PartialLinear: a Linear layer of which only some outputs are computed ((batch, inputsize) -> (batch, chosen outputs)).

local PartialLinear = torch.class('nn.PartialLinear', 'nn.Module')

--- bias (true). All outputs are computed until setPartition is called. The weights are a LookupTable's in `network`, a row an output.
function PartialLinear:__init(inputsize, outputsize, bias)
   nn.Module.__init(self)
   local rows = nn.ParallelTable():add(nn.Identity()):add(nn.LookupTable(outputsize, inputsize))
   self.network = nn.Sequential():add(rows):add(nn.MM(false, true))
   if bias == nil or bias then
      self.bias, self.gradBias = torch.Tensor(1, outputsize):zero(), torch.Tensor(1, outputsize):zero()
   end
   self.inputsize, self.outputsize = inputsize, outputsize
   self.allcolumns = torch.range(1, outputsize)
   self:resetPartition()
end

--- Chooses outputs by number.
function PartialLinear:setPartition(indices)
   self.partition = indices:type(self.allcolumns:type())
end

--- Chooses all outputs.
function PartialLinear:resetPartition()
   self.partition = self.allcolumns
end

local function rowsOf(self) return self.network:get(1):get(2) end

function PartialLinear:parameters()
   local rows = rowsOf(self)
   return {rows.weight, self.bias}, {rows.gradWeight, self.gradBias}
end

function PartialLinear:updateOutput(input)
   local y = self.network:forward {input, self.partition}
   if self.bias then y = y + self.bias:index(2, require('relume.core').op.cast(self.partition, 'Long')):expandAs(y) end
   self.output:set(y)
   return self.output
end

function PartialLinear:updateGradInput(input, gradOutput)
   if self.gradInput then
      self.gradInput:set(self.network:updateGradInput({input, self.partition}, gradOutput)[1])
   end
   return self.gradInput
end

function PartialLinear:accGradParameters(input, gradOutput, scale)
   scale = scale or 1
   self.network:accGradParameters({input, self.partition}, gradOutput, scale)
   if self.bias then self.gradBias:indexAdd(2, require('relume.core').op.cast(self.partition, 'Long'), gradOutput:sum(1) * scale) end
end

function PartialLinear:accUpdateGradParameters(input, gradOutput, lr)
   local rows, gradBias = rowsOf(self), self.gradBias
   local gradWeight = rows.gradWeight
   rows.gradWeight, self.gradBias = rows.weight, self.bias
   self:accGradParameters(input, gradOutput, -lr)
   rows.gradWeight, self.gradBias = gradWeight, gradBias
end

function PartialLinear:__tostring__()
   return ('%s(%d -> %d)%s'):format(torch.type(self), self.inputsize, self.outputsize, self.bias == nil and ' without bias' or '')
end
