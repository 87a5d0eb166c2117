-- JoinTable: joins the tensors of a table along a dimension.

local tape = require 'nn.tape'
local JoinTable = torch.class('nn.JoinTable', 'nn.Module')

--- dimension counts without the batch dimension when nInputDims (the dimensions of one sample) is given; negative: from the end.
function JoinTable:__init(dimension, nInputDims)
   nn.Module.__init(self)
   self.size = torch.LongStorage()
   self.dimension = dimension
   self.gradInput = {}
   self.nInputDims = nInputDims
end

function JoinTable:_getPositiveDimension(input)
   local dimension, dims = self.dimension, input[1]:dim()
   if dimension < 0 then
      return dims + dimension + 1
   elseif self.nInputDims and dims == self.nInputDims + 1 then
      return dimension + 1
   end
   return dimension
end

JoinTable.updateOutput = tape.plain

function JoinTable:compute(input)
   return torch.cat(input, self:_getPositiveDimension(input))
end

function JoinTable:updateGradInput(input, gradOutput)
   local dimension = self:_getPositiveDimension(input)
   local gradInput, offset = self.gradInput, 1
   for i = 1, #input do
      local n = input[i]:size(dimension)
      local g = gradInput[i] or input[i].new()
      gradInput[i] = g:resizeAs(input[i]):copy(gradOutput:narrow(dimension, offset, n))
      offset = offset + n
   end
   for i = #input + 1, #gradInput do gradInput[i] = nil end
   return gradInput
end

function JoinTable:type(type, tensorCache)
   self.gradInput = {}
   return nn.Module.type(self, type, tensorCache)
end
