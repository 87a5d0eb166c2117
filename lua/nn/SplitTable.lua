-- SplitTable: cuts a tensor along a dimension into a table of its slices, which lose that dimension.

local SplitTable = torch.class('nn.SplitTable', 'nn.Module')

--- dimension counts without the batch dimension when nInputDims (the dimensions of one sample) is given; negative: from the end.
function SplitTable:__init(dimension, nInputDims)
   nn.Module.__init(self)
   self.dimension = dimension
   self.nInputDims = nInputDims
end

function SplitTable:_getPositiveDimension(input)
   local dimension, dims = self.dimension, input:dim()
   if dimension < 0 then
      return dims + dimension + 1
   elseif self.nInputDims and dims == self.nInputDims + 1 then
      return dimension + 1
   end
   return dimension
end

function SplitTable:updateOutput(input)
   local dimension = self:_getPositiveDimension(input)
   local output = {}
   for i = 1, input:size(dimension) do
      output[i] = input:select(dimension, i)
   end
   self.output = output
   return output
end

function SplitTable:updateGradInput(input, gradOutput)
   local dimension = self:_getPositiveDimension(input)
   local gradInput = self.gradInput
   if #gradOutput == 0 then return gradInput end
   gradInput:resizeAs(input)
   for i = 1, input:size(dimension) do
      gradInput:select(dimension, i):copy(gradOutput[i])
   end
   return gradInput
end
