-- SpatialFullConvolutionMap: a transposed 2D convolution in which a table says which input planes each output plane sees.

local conv = require 'nn.conv'
local op = require('relume.core').op
local SpatialFullConvolutionMap = torch.class('nn.SpatialFullConvolutionMap', 'nn.Module')

local Map = nn.SpatialConvolutionMap
for _, name in ipairs {'__init', 'reset', 'dense'} do SpatialFullConvolutionMap[name] = Map[name] end

function SpatialFullConvolutionMap:compute(input, weight, bias)
   local x, single = conv.batch(input, 3)
   local w = self:dense(weight, 1, 2, self.nInputPlane, self.nOutputPlane)
   return conv.unbatch(op.conv_transpose2d(x, w, bias, {self.dH, self.dW}, {0, 0}, {1, 1}, {0, 0}, 1), single)
end

SpatialFullConvolutionMap.__tostring__ = conv.tostring
