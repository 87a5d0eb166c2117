-- SpatialConvolutionMap: a 2D convolution in which a table says which input planes each output plane sees.

local conv = require 'nn.conv'
local op = require('relume.core').op
local SpatialConvolutionMap = torch.class('nn.SpatialConvolutionMap', 'nn.Module')

--- conMatrix: rows of {input plane, output plane} (nn.tables makes some); kernel kW x kH, strides (1). weight is (connections, kH, kW).
function SpatialConvolutionMap:__init(conMatrix, kW, kH, dW, dH)
   nn.Module.__init(self)
   self.kW, self.kH, self.dW, self.dH = kW, kH, dW or 1, dH or 1
   self.connTable = conMatrix
   self.nInputPlane, self.nOutputPlane = conMatrix:select(2, 1):max(), conMatrix:select(2, 2):max()
   self.weight = torch.Tensor(conMatrix:size(1), kH, kW)
   self.gradWeight = self.weight:clone():zero()
   self.bias, self.gradBias = torch.Tensor(self.nOutputPlane), torch.Tensor(self.nOutputPlane):zero()
   self:reset()
end

--- Uniform within 1 / sqrt(the number of weights that an output plane sees).
function SpatialConvolutionMap:reset(stdv)
   if stdv then
      stdv = stdv * math.sqrt(3)
      self.weight:uniform(-stdv, stdv)
      self.bias:uniform(-stdv, stdv)
      return
   end
   local outputs = self.connTable:select(2, 2)
   for o = 1, self.nOutputPlane do
      local limit = 1 / math.sqrt(self.kW * self.kH * math.max(outputs:eq(o):sum(), 1))
      for i = 1, outputs:size(1) do
         if outputs[i] == o then self.weight[i]:uniform(-limit, limit) end
      end
      self.bias[o] = torch.uniform(-limit, limit)
   end
end

--- The weights as a dense (first, second, kH, kW); row and column are the places of both in the table.
function SpatialConvolutionMap:dense(weight, row, column, first, second)
   local rows, columns = self.connTable:select(2, row):long(), self.connTable:select(2, column):long()
   local places = op.add(op.mul(op.sub(rows, 1), second), op.sub(columns, 1))
   local taps = self.kH * self.kW
   local empty = op.zeros({first * second, taps}, (weight:type():match 'torch%.(%a+)Tensor'))
   return op.index_add(empty, places, weight:view(weight:size(1), taps), 0):view(first, second, self.kH, self.kW)
end

function SpatialConvolutionMap:compute(input, weight, bias)
   local x, single = conv.batch(input, 3)
   local w = self:dense(weight, 2, 1, self.nOutputPlane, self.nInputPlane)
   return conv.unbatch(op.conv2d(x, w, bias, {self.dH, self.dW}, {0, 0}, {1, 1}, 1), single)
end

SpatialConvolutionMap.__tostring__ = conv.tostring
