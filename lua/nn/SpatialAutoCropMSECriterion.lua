-- SpatialAutoCropMSECriterion: squared differences from the middle of a target that may be larger than the input.

local SpatialAutoCropMSECriterion = torch.class('nn.SpatialAutoCropMSECriterion', 'nn.MSECriterion')

function SpatialAutoCropMSECriterion:compute(input, target)
   local d = input:dim()
   assert(d == target:dim(), 'input and target should have the same number of dimensions')
   assert(d == 4 or d == 3, 'input and target must have 3 or 4 dimensions')
   for i = 1, d - 2 do assert(input:size(i) == target:size(i), 'input and target should have as many samples and channels') end
   for i = d - 1, d do
      local more = target:size(i) - input:size(i)
      assert(more >= 0, 'Spatial resolution of input should be less than or equal to the spatial resolution of the target')
      target = target:narrow(i, math.floor(more / 2) + 1, input:size(i))
   end
   return nn.MSECriterion.compute(self, input, target)
end
