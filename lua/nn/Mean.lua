-- Mean: the mean along a dimension.

local Mean = torch.class('nn.Mean', 'nn.Sum')

--- See nn.Sum.
function Mean:__init(dimension, nInputDims)
   nn.Sum.__init(self, dimension, nInputDims, true)
end
