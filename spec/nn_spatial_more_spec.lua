-- Less common spatial and temporal layers: values from their definitions, gradients by differences, batches.
local check = require 'support.module_check'

local function sizes(t) return t:size():totable() end

-- Calls f(c, h, w) for every element of y (planes, height, width).
local function each(y, f)
   for c = 1, y:size(1) do
      for h = 1, y:size(2) do
         for w = 1, y:size(3) do f(c, h, w) end
      end
   end
end

describe('local normalisations', function()
   before_each(function() torch.manualSeed(71) end)

   it('nn.SpatialCrossMapLRN', function()
      local m, x = nn.SpatialCrossMapLRN(3, 0.5, 0.7, 2), torch.randn(4, 2, 3)
      local y = check.module(m, x)
      each(y, function(c, h, w)
         local sum = 0
         for i = math.max(1, c - 1), math.min(4, c + 1) do sum = sum + x[i][h][w] ^ 2 end
         assert.near(y[c][h][w], x[c][h][w] / (2 + 0.5 / 3 * sum) ^ 0.7, 1e-12)
      end)
      check.batch(m, torch.randn(2, 4, 2, 3))
   end)

   -- Weighted mean of f(x) around a place, weights outside the image left out.
   local function mean(x, k, h, w, f)
      local sum, total = 0, 0
      local ph, pw = (k:size(1) - 1) / 2, (k:size(2) - 1) / 2
      for i = 1, k:size(1) do
         for j = 1, k:size(2) do
            local a, b = h + i - 1 - ph, w + j - 1 - pw
            if a >= 1 and b >= 1 and a <= x:size(2) and b <= x:size(3) then
               total = total + k[i][j]
               for c = 1, x:size(1) do sum = sum + k[i][j] * f(x[c][a][b]) end
            end
         end
      end
      return sum / x:size(1), total / k:sum()
   end

   it('nn.SpatialSubtractiveNormalization, kernels of both kinds', function()
      local k, x = torch.rand(3, 5) + 0.1, torch.randn(2, 4, 5)
      local y = check.module(nn.SpatialSubtractiveNormalization(2, k), x)
      each(y, function(c, h, w)
         local sum, total = mean(x, k, h, w, function(v) return v end)
         assert.near(y[c][h][w], x[c][h][w] - sum / k:sum() / total, 1e-10)
      end)
      local line = torch.Tensor {1, 2, 1}
      local want = nn.SpatialSubtractiveNormalization(2, torch.ger(line, line)):forward(x)
      assert.near(nn.SpatialSubtractiveNormalization(2, line):forward(x), want, 1e-12)
      check.batch(nn.SpatialSubtractiveNormalization(2, k), torch.randn(2, 2, 4, 5))
      assert.error_matches(function() nn.SpatialSubtractiveNormalization(1, torch.ones(2, 3)) end, 'ODD')
   end)

   it('nn.SpatialDivisiveNormalization and the two together', function()
      local k, x = torch.rand(3, 3) + 0.1, torch.randn(2, 4, 5)
      local y = check.module(nn.SpatialDivisiveNormalization(2, k), x)
      each(y, function(c, h, w)
         local sum, total = mean(x, k, h, w, function(v) return v * v end)
         assert.near(y[c][h][w], x[c][h][w] / (math.sqrt(sum / k:sum()) / total), 1e-10)
      end)
      assert.near(nn.SpatialDivisiveNormalization(2, k, 1e3, 4):forward(x), x / 4, 1e-12)
      local both = nn.SpatialContrastiveNormalization(2, k)
      local want = nn.SpatialDivisiveNormalization(2, k):forward(nn.SpatialSubtractiveNormalization(2, k):forward(x))
      assert.near(check.module(both, x), want, 1e-12)
   end)
end)

describe('poolings', function()
   before_each(function() torch.manualSeed(72) end)

   it('nn.SpatialLPPooling and nn.FeatureLPPooling', function()
      local x = torch.rand(2, 4, 4) + 0.1
      for _, p in ipairs {2, 3} do
         local y = check.module(nn.SpatialLPPooling(2, p, 2, 2), x)
         local window = x[2]:narrow(1, 1, 2):narrow(2, 3, 2)
         assert.near(y[2][1][2], torch.pow(window, p):sum() ^ (1 / p), 1e-10)
      end
      local y = check.module(nn.FeatureLPPooling(2, 1, 3), torch.rand(4, 3) + 0.1)
      assert.same({3, 3}, sizes(y))
      local b = torch.rand(2, 5, 3) + 0.1
      y = check.module(nn.FeatureLPPooling(3, 2, 2, true), b)
      assert.near(y[2][2][1], math.sqrt(b[2][3][1] ^ 2 + b[2][4][1] ^ 2 + b[2][5][1] ^ 2), 1e-10)
   end)

   it('nn.SpatialAdaptiveMaxPooling', function()
      local m, x = nn.SpatialAdaptiveMaxPooling(3, 2), torch.randn(2, 5, 7)
      local y = check.module(m, x)
      assert.same({2, 2, 3}, sizes(y))
      each(y, function(c, h, w)
         local h0, w0 = math.floor((h - 1) * 5 / 2), math.floor((w - 1) * 7 / 3)
         local window = x[c]:narrow(1, h0 + 1, math.ceil(h * 5 / 2) - h0):narrow(2, w0 + 1, math.ceil(w * 7 / 3) - w0)
         assert.equal(window:max(), y[c][h][w])
      end)
      check.batch(m, torch.randn(2, 2, 5, 7))
   end)

   it('nn.SpatialFractionalMaxPooling and its volumetric form', function()
      local m, x = nn.SpatialFractionalMaxPooling(2, 2, 4, 3):fixPoolingRegions(), torch.randn(2, 5, 7)
      local y = check.module(m, x, {noFloat = true})
      assert.same({2, 3, 4}, sizes(y))
      local r = m.randomSamples
      local function start(n, out, size, u, i)
         local alpha = (n - size) / (out - 1)
         return i == out - 1 and n - size or math.floor((i + u) * alpha) - math.floor(u * alpha)
      end
      each(y, function(c, h, w)
         local window = x[c]:narrow(1, start(5, 3, 2, r[c][2], h - 1) + 1, 2):narrow(2, start(7, 4, 2, r[c][1], w - 1) + 1, 2)
         assert.equal(window:max(), y[c][h][w])
      end)
      assert.same({2, 2, 4}, sizes(nn.SpatialFractionalMaxPooling(2, 2, 0.6, 0.5):forward(x)))
      local v = nn.VolumetricFractionalMaxPooling(2, 2, 2, 2, 3, 2):fixPoolingRegions()
      y = check.module(v, torch.randn(1, 3, 5, 4), {noFloat = true}) -- (planes, height, width, time)
      assert.same({1, 2, 3, 2}, sizes(y))
      assert.error_matches(function() nn.SpatialFractionalMaxPooling(2, 2, 9, 3):forward(x) end, 'need fewer in 7')
   end)

   it('nn.SpatialSubSampling and the temporal ones', function()
      local m, x = nn.SpatialSubSampling(2, 2, 3, 1, 2), torch.randn(2, 5, 4)
      local y = check.module(m, x)
      assert.near(y[2][2][3], m.weight[2] * x[2]:narrow(1, 3, 3):narrow(2, 3, 2):sum() + m.bias[2], 1e-10)
      local t, f = nn.TemporalSubSampling(3, 2, 2), torch.randn(6, 3)
      y = check.module(t, f)
      assert.near(y[2][3], t.weight[3] * (f[3][3] + f[4][3]) + t.bias[3], 1e-10)
      check.batch(t, torch.randn(2, 6, 3))
      local k = check.module(nn.TemporalDynamicKMaxPooling(2, 0.5), torch.Tensor {{1, 5}, {4, 2}, {3, 9}, {2, 8}, {0, 7}})
      assert.near(k, torch.Tensor {{4, 9}, {3, 8}, {2, 7}}, 0)
      check.batch(nn.TemporalDynamicKMaxPooling(3), torch.randn(2, 5, 3))
   end)
end)

describe('convolutions with other connections', function()
   before_each(function() torch.manualSeed(73) end)

   it('nn.SpatialConvolutionLocal', function()
      local m, x = nn.SpatialConvolutionLocal(2, 3, 5, 4, 2, 3, 2, 1, 1, 0), torch.randn(2, 4, 5)
      local y = check.module(m, x)
      local p = nn.SpatialZeroPadding(1, 1, 0, 0):forward(x)
      each(y, function(o, h, w)
         local window = p:narrow(2, h, 3):narrow(3, 2 * w - 1, 2)
         assert.near(y[o][h][w], torch.cmul(window, m.weight[h][w][o]):sum() + m.bias[o][h][w], 1e-10)
      end)
      check.batch(m, torch.randn(2, 2, 4, 5))
   end)

   it('nn.SpatialConvolutionMap and nn.SpatialFullConvolutionMap', function()
      local m, x = nn.SpatialConvolutionMap(nn.tables.random(3, 4, 2), 2, 3), torch.randn(3, 5, 4)
      local y = check.module(m, x)
      each(y, function(o, h, w)
         local sum = m.bias[o]
         for i = 1, 8 do
            if m.connTable[i][2] == o then
               sum = sum + torch.cmul(x[m.connTable[i][1]]:narrow(1, h, 3):narrow(2, w, 2), m.weight[i]):sum()
            end
         end
         assert.near(y[o][h][w], sum, 1e-10)
      end)
      local f = nn.SpatialFullConvolutionMap(nn.tables.full(2, 3), 2, 2, 2, 2)
      local dense = nn.SpatialFullConvolution(2, 3, 2, 2, 2, 2)
      for i = 1, 6 do dense.weight[f.connTable[i][1]][f.connTable[i][2]]:copy(f.weight[i]) end
      dense.bias:copy(f.bias)
      local z = torch.randn(2, 3, 3)
      assert.near(check.module(f, z), dense:forward(z), 1e-12)
      assert.near(nn.tables.oneToOne(2), torch.Tensor {{1, 1}, {2, 2}}, 0)
   end)

   it('nn.SpatialDepthWiseConvolution and nn.TemporalRowConvolution', function()
      local m, x = nn.SpatialDepthWiseConvolution(2, 3, 2, 2, 1, 1, 1, 0), torch.randn(2, 3, 4)
      local y = check.module(m, x)
      assert.same({6, 2, 5}, sizes(y))
      assert.near(y[5][2][3], torch.cmul(x[2]:narrow(1, 2, 2):narrow(2, 2, 2), m.weight[2][2]):sum() + m.bias[2][2], 1e-10)
      local t, f = nn.TemporalRowConvolution(3, 2, 2), torch.randn(6, 3)
      y = check.module(t, f)
      assert.near(y[2][3], t.weight[3][1][1] * f[3][3] + t.weight[3][1][2] * f[4][3] + t.bias[3], 1e-10)
      t.featFirst = true
      assert.near(t:forward(f:t()), y:t(), 1e-12)
   end)
end)

describe('up-sampling', function()
   before_each(function() torch.manualSeed(74) end)

   it('nn.SpatialUpSamplingBilinear', function()
      local m, x = nn.SpatialUpSamplingBilinear {oheight = 5, owidth = 4}, torch.randn(2, 3, 3)
      local y = check.module(m, x)
      each(y, function(c, h, w)
         local a, b = (h - 1) * 2 / 4, (w - 1) * 2 / 3
         local i, j = math.min(math.floor(a), 1), math.min(math.floor(b), 1)
         local p, q = a - i, b - j
         local function at(di, dj) return x[c][i + di + 1][j + dj + 1] end
         assert.near(y[c][h][w], (1 - p) * ((1 - q) * at(0, 0) + q * at(0, 1)) + p * ((1 - q) * at(1, 0) + q * at(1, 1)), 1e-10)
      end)
      assert.same({2, 6, 6}, sizes(nn.SpatialUpSamplingBilinear(2):forward(x)))
   end)

   it('nn.UpSampling', function()
      local x, v = torch.randn(1, 2, 2, 3), torch.randn(1, 1, 2, 2, 3)
      assert.near(check.module(nn.UpSampling(2), x), nn.SpatialUpSamplingNearest(2):forward(x), 0)
      assert.near(check.module(nn.UpSampling(2, 'linear'), x), nn.SpatialUpSamplingBilinear(2):forward(x), 1e-12)
      assert.same({1, 1, 6, 6, 9}, sizes(check.module(nn.UpSampling(3), v)))
      assert.same({1, 1, 3, 5, 4}, sizes(check.module(nn.UpSampling({odepth = 3, oheight = 5, owidth = 4}, 'trilinear'), v)))
      assert.error_matches(function() nn.UpSampling(2):forward(x[1]) end, 'got 3 dimensions, need 4 or 5')
   end)
end)
