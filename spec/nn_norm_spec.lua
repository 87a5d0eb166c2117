-- Normalising modules: values from the definitions, running statistics, gradients in both modes, text.
local check = require 'support.module_check'

-- Mean and biased variance of a flat list.
local function moments(t)
   local l, m, v = t:contiguous():view(-1):totable(), 0, 0
   for i = 1, #l do m = m + l[i] / #l end
   for i = 1, #l do v = v + (l[i] - m) ^ 2 / #l end
   return m, v, #l
end

describe('nn.BatchNormalization', function()
   before_each(function() torch.manualSeed(61) end)

   -- Feature k of x as one tensor.
   local function feature(x, k) return x:select(2, k) end

   local function checkValues(m, x)
      local mean0, var0 = m.running_mean:clone(), m.running_var:clone()
      local y = m:forward(x):clone()
      for k = 1, x:size(2) do
         local mu, v, n = moments(feature(x, k))
         local want = (feature(x, k) - mu) / math.sqrt(v + m.eps)
         if m.weight then want = want * m.weight[k] + m.bias[k] end
         assert.near(feature(y, k):clone(), want, 1e-9)
         assert.near(m.running_mean[k], mean0[k] * (1 - m.momentum) + m.momentum * mu, 1e-10)
         assert.near(m.running_var[k], var0[k] * (1 - m.momentum) + m.momentum * v * n / (n - 1), 1e-10)
      end
   end

   it('normalises and keeps running statistics', function()
      checkValues(nn.BatchNormalization(4), torch.randn(5, 4) * 3 + 1)
      checkValues(nn.BatchNormalization(4, 1e-3, 0.3, false), torch.randn(5, 4))
      checkValues(nn.SpatialBatchNormalization(3), torch.randn(2, 3, 4, 5))
      checkValues(nn.VolumetricBatchNormalization(3), torch.randn(2, 3, 2, 4, 5))
   end)

   -- A fixed copy of the statistics, so that forward is a function of its input.
   local function modules() return {nn.BatchNormalization(4), nn.BatchNormalization(4, nil, nil, false)} end

   it('has right gradients in training', function()
      for _, m in ipairs(modules()) do check.module(m, torch.randn(5, 4), {tolerance = 1e-5}) end
      check.module(nn.SpatialBatchNormalization(3), torch.randn(2, 3, 2, 3), {tolerance = 1e-5})
   end)

   it('uses the running statistics in evaluate mode', function()
      local m, x = nn.SpatialBatchNormalization(3), torch.randn(2, 3, 2, 3)
      m.running_mean:uniform(-1, 1)
      m.running_var:uniform(0.5, 2)
      m.bias:uniform()
      m:evaluate()
      local mean = m.running_mean:clone()
      local y = check.module(m, x)
      for k = 1, 3 do
         local want = (feature(x, k) - mean[k]) / math.sqrt(m.running_var[k] + m.eps) * m.weight[k] + m.bias[k]
         assert.near(feature(y, k):clone(), want, 1e-10)
      end
      assert.near(m.running_mean, mean, 0)
      assert.near(m:forward(x[1]), y[1], 1e-12)
   end)

   it('starts with weights in [0, 1) and biases 0', function()
      local m = nn.BatchNormalization(50)
      assert.is_true(m.weight:min() >= 0 and m.weight:max() < 1 and m.weight:max() > 0.5)
      assert.equal(0, m.bias:abs():sum())
      assert.equal(50, m.running_var:sum())
   end)

   it('prints, and names wrong inputs', function()
      assert.equal('nn.SpatialBatchNormalization (4D) (3)', tostring(nn.SpatialBatchNormalization(3)))
      assert.has_error(function() nn.BatchNormalization(3):forward(torch.randn(5, 4)) end)
      assert.has_error(function() nn.BatchNormalization(3):forward(torch.randn(5, 3, 2, 2)) end)
      assert.has_error(function() nn.BatchNormalization() end)
   end)
end)

describe('nn.LayerNorm and nn.GroupNorm', function()
   before_each(function() torch.manualSeed(62) end)

   it('normalises the last dimension', function()
      local m, x = nn.LayerNorm(6), torch.randn(3, 6) * 2 + 1
      m.weight:uniform(0.5, 1.5)
      m.bias:uniform()
      local y = check.module(m, x, {tolerance = 1e-5})
      for i = 1, 3 do
         local mu, v = moments(x[i])
         assert.near(y[i], torch.cmul((x[i] - mu) / math.sqrt(v + 1e-5), m.weight) + m.bias, 1e-9)
      end
      check.module(nn.LayerNorm(6, 1e-5, false), torch.randn(2, 3, 6), {tolerance = 1e-5})
      assert.near(nn.LayerNorm(6):forward(x[1]), nn.LayerNorm(6):forward(x)[1], 1e-12)
   end)

   it('normalises groups of planes', function()
      local m, x = nn.GroupNorm(2, 4), torch.randn(3, 4, 2, 3)
      m.weight:uniform(0.5, 1.5)
      m.bias:uniform()
      local y = check.module(m, x, {tolerance = 1e-5})
      for i = 1, 3 do
         for g = 1, 2 do
            local mu, v = moments(x[i]:narrow(1, 2 * g - 1, 2))
            for c = 2 * g - 1, 2 * g do
               assert.near(y[i][c]:clone(), (x[i][c] - mu) / math.sqrt(v + 1e-5) * m.weight[c] + m.bias[c], 1e-9)
            end
         end
      end
      check.module(nn.GroupNorm(2, 4, 1e-5, false), torch.randn(3, 4), {tolerance = 1e-5})
      assert.has_error(function() nn.GroupNorm(3, 4) end)
   end)
end)
