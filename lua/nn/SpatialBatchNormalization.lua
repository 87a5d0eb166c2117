-- SpatialBatchNormalization: batch normalisation of (batch, planes, height, width), one mean and variance a plane.

local SpatialBatchNormalization = torch.class('nn.SpatialBatchNormalization', 'nn.BatchNormalization')

SpatialBatchNormalization.nDim = 4
