-- SpatialSoftMax: SoftMax over the planes of an image.

torch.class('nn.SpatialSoftMax', 'nn.SoftMax')
