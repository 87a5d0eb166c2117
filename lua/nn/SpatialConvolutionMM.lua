-- SpatialConvolutionMM: SpatialConvolution whose weight is the matrix (nOutputPlane, nInputPlane * kH * kW).

local SpatialConvolutionMM = torch.class('nn.SpatialConvolutionMM', 'nn.SpatialConvolution')

--- See nn.SpatialConvolution.
function SpatialConvolutionMM:__init(nInputPlane, nOutputPlane, kW, kH, dW, dH, padW, padH)
   nn.SpatialConvolution.__init(self, nInputPlane, nOutputPlane, kW, kH, dW, dH, padW, padH)
   self.weight = self.weight:view(nOutputPlane, nInputPlane * kH * kW)
   self.gradWeight = self.gradWeight:view(nOutputPlane, nInputPlane * kH * kW)
end
