-- VolumetricBatchNormalization: batch normalisation of (batch, planes, time, height, width), one mean and variance a plane.

local VolumetricBatchNormalization = torch.class('nn.VolumetricBatchNormalization', 'nn.BatchNormalization')

VolumetricBatchNormalization.nDim = 5
