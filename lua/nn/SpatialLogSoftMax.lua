-- SpatialLogSoftMax: LogSoftMax over the planes of an image.

torch.class('nn.SpatialLogSoftMax', 'nn.LogSoftMax')
