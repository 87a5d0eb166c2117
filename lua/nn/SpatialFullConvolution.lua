-- SpatialFullConvolution: transposed 2D convolution ("deconvolution").

local conv = require 'nn.conv'
local conv_transpose2d = require('relume.core').op.conv_transpose2d
local SpatialFullConvolution = torch.class('nn.SpatialFullConvolution', 'nn.Module')

--- Kernel kW x kH, strides dW, dH (1), padding padW (0), padH (padW), extra output size adjW (0), adjH (adjW).
-- weight is (nInputPlane, nOutputPlane, kH, kW). Output height is (height - 1) dH - 2 padH + kH + adjH.
function SpatialFullConvolution:__init(nInputPlane, nOutputPlane, kW, kH, dW, dH, padW, padH, adjW, adjH)
   nn.Module.__init(self)
   self.nInputPlane = nInputPlane
   self.nOutputPlane = nOutputPlane
   self.kW, self.kH = kW, kH
   self.dW, self.dH = dW or 1, dH or 1
   self.padW = padW or 0
   self.padH = padH or self.padW
   self.adjW = adjW or 0
   self.adjH = adjH or self.adjW
   if self.adjW > self.dW - 1 or self.adjH > self.dH - 1 then
      error 'adjW and adjH must be smaller than self.dW - 1 and self.dH - 1 respectively'
   end
   self.weight = torch.Tensor(nInputPlane, nOutputPlane, kH, kW)
   self.gradWeight = torch.Tensor(nInputPlane, nOutputPlane, kH, kW):zero()
   self.bias = torch.Tensor(nOutputPlane)
   self.gradBias = torch.Tensor(nOutputPlane):zero()
   self.ones = torch.Tensor()
   self:reset()
end

SpatialFullConvolution.noBias = conv.noBias

function SpatialFullConvolution:reset(stdv)
   return conv.reset(self, self.nInputPlane * self.kH * self.kW, stdv)
end

-- input is a tensor, or {tensor, tensor whose height and width the output is to have}.
function SpatialFullConvolution:compute(input, weight, bias)
   local adjW, adjH = self.adjW or 0, self.adjH or 0
   local x = input
   if type(input) == 'table' then
      x = input[1]
      local like, d, n = input[2], input[2]:dim(), x:dim()
      adjH = conv.adjust(like:size(d - 1), x:size(n - 1), self.dH, self.kH, self.padH)
      adjW = conv.adjust(like:size(d), x:size(n), self.dW, self.kW, self.padW)
   end
   local single
   x, single = conv.batch(x, 3)
   local y = conv_transpose2d(x, weight, bias, {self.dH, self.dW}, {self.padH, self.padW}, {1, 1}, {adjH, adjW}, 1)
   return conv.unbatch(y, single)
end

function SpatialFullConvolution:__tostring__()
   local adj = (self.adjW or 0) ~= 0 or (self.adjH or 0) ~= 0
   return conv.tostring(self, adj and ', ' .. self.adjW .. ',' .. self.adjH or '')
end
