-- Every class of the original's nn is here, with its parent or one below it.
local missing = {} -- class -> reason; none at present

local parents = {Clamp = 'nn.HardTanh', Bottle = 'nn.Decorator', DepthConcat = 'nn.Concat', Mean = 'nn.Sum',
   ReLU = 'nn.Threshold', Maxout = 'nn.Sequential', NaN = 'nn.Decorator', Profile = 'nn.Decorator', WeightNorm = 'nn.Decorator',
   DontCast = 'nn.Decorator', GPU = 'nn.Container', Convert = 'nn.Container', LinearWeightNorm = 'nn.Linear',
   LayerNormalization = 'nn.Sequential', SpatialLPPooling = 'nn.Sequential', VolumetricDilatedConvolution = 'nn.VolumetricConvolution',
   VolumetricDilatedMaxPooling = 'nn.VolumetricMaxPooling', SpatialDilatedConvolution = 'nn.SpatialConvolution',
   ClassSimplexCriterion = 'nn.MSECriterion', SpatialAutoCropMSECriterion = 'nn.MSECriterion', WeightedMSECriterion = 'nn.MSECriterion'}

describe('classes of nn', function()
   it('are all there', function()
      local n = 0
      for name in io.lines 'spec/data/nn_classes.txt' do
         n = n + 1
         if missing[name] then
            assert.is_nil(rawget(nn, name), name .. ' exists: take it from the list of missing ones')
         else
            local class = nn[name]
            assert.is_truthy(class, 'nn.' .. name)
            local mt = torch.getmetatable('nn.' .. name)
            assert.equal('nn.' .. name, mt.__typename)
            assert.equal('function', type(rawget(mt, '__init') or mt.__init), name)
         end
      end
      assert.is_true(n > 160)
   end)

   it('have the original\'s parents', function()
      for name, parent in pairs(parents) do
         assert.is_truthy(nn[name])
         local mt, found = torch.getmetatable('nn.' .. name), false
         while mt do
            found = found or mt.__typename == parent
            mt = getmetatable(mt)
         end
         assert.is_true(found, name)
      end
   end)
end)
