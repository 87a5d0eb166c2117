-- Less common layers and criterions: values from their definitions, gradients.
local check = require 'support.module_check'

local function sizes(t) return t:size():totable() end

describe('temporal modules', function()
   before_each(function() torch.manualSeed(81) end)

   it('nn.TemporalConvolution', function()
      for _, a in ipairs {{3, 2, 2}, {3, 2, 3, 2}, {2, 4, 1}} do
         local m, x = nn.TemporalConvolution(unpack(a)), torch.randn(7, a[1])
         local y = check.module(m, x)
         assert.same({math.floor((7 - m.kW) / m.dW) + 1, a[2]}, sizes(y))
         for i = 1, y:size(1) do
            local window = x:narrow(1, (i - 1) * m.dW + 1, m.kW):contiguous():view(-1)
            assert.near(y[i], m.weight * window + m.bias, 1e-10)
         end
         check.batch(m, torch.randn(3, 7, a[1]))
         check.module(m, torch.randn(2, 7, a[1]))
      end
      assert.has_error(function() nn.TemporalConvolution(3, 2, 2):forward(torch.randn(7, 4)) end)
      assert.has_error(function() nn.TemporalConvolution(3, 2, 9):forward(torch.randn(7, 3)) end)
   end)

   it('nn.TemporalMaxPooling', function()
      local m, x = nn.TemporalMaxPooling(3, 2), torch.randn(8, 4)
      local y = check.module(m, x)
      assert.same({3, 4}, sizes(y))
      for i = 1, 3 do
         for k = 1, 4 do assert.equal(x:narrow(1, 2 * i - 1, 3):select(2, k):max(), y[i][k]) end
      end
      check.batch(m, torch.randn(2, 8, 4))
   end)
end)

describe('containers of one module', function()
   before_each(function() torch.manualSeed(82) end)

   it('nn.Bottle', function()
      local m, x = nn.Bottle(nn.Linear(4, 3)), torch.randn(2, 5, 4)
      local y = check.module(m, x)
      assert.same({2, 5, 3}, sizes(y))
      assert.near(y[2], m:get(1):forward(x[2]), 1e-12)
      check.module(nn.Bottle(nn.Linear(4, 3)), torch.randn(5, 4))
   end)

   it('nn.Decorator', function()
      check.module(nn.Decorator(nn.Linear(4, 3)), torch.randn(2, 4))
      assert.equal('nn.Decorator @ nn.Linear(4 -> 3)', tostring(nn.Decorator(nn.Linear(4, 3))))
   end)

   it('nn.Maxout', function()
      local m, x = nn.Maxout(4, 3, 2), torch.randn(5, 4)
      local y = check.module(m, x)
      local h = m:get(1):forward(x):clone()
      for i = 1, 5 do
         for k = 1, 3 do assert.near(y[i][k], math.max(h[i][k], h[i][k + 3]), 1e-12) end
      end
   end)
end)

describe('distances and products', function()
   before_each(function() torch.manualSeed(83) end)

   it('nn.Normalize', function()
      for _, p in ipairs {1, 2, 3, math.huge} do
         local x = torch.randn(3, 4)
         local y = check.module(nn.Normalize(p), x, {noFloat = true})
         local norm = p == math.huge and x[2]:clone():abs():max() or torch.pow(torch.abs(x[2]), p):sum() ^ (1 / p)
         assert.near(y[2], x[2] / norm, 1e-8)
      end
      check.batch(nn.Normalize(2), torch.randn(3, 4))
   end)

   it('nn.PairwiseDistance and nn.CosineDistance', function()
      local x = {torch.randn(3, 4), torch.randn(3, 4)}
      for _, p in ipairs {1, 2, 3} do
         local y = check.module(nn.PairwiseDistance(p), x)
         assert.near(y[2], torch.pow(torch.abs(x[1][2] - x[2][2]), p):sum() ^ (1 / p), 1e-10)
      end
      local c = check.module(nn.CosineDistance(), x)
      assert.near(c[3], torch.dot(x[1][3], x[2][3]) / x[1][3]:norm() / x[2][3]:norm(), 1e-10)
   end)

   it('nn.Cosine and nn.Euclidean', function()
      local m, x = nn.Cosine(4, 3), torch.randn(5, 4)
      local y = check.module(m, x)
      assert.near(y[2][3], torch.dot(x[2], m.weight[3]) / x[2]:norm() / m.weight[3]:norm(), 1e-10)
      local e = nn.Euclidean(4, 3)
      local d = check.module(e, x)
      assert.near(d[2][3], (x[2] - e.weight:select(2, 3)):norm(), 1e-10)
   end)

   it('nn.Bilinear', function()
      local m, a, b = nn.Bilinear(4, 3, 2), torch.randn(5, 4), torch.randn(5, 3)
      local y = check.module(m, {a, b})
      assert.near(y[3][2], torch.dot(a[3], m.weight[2] * b[3]) + m.bias[2], 1e-10)
      check.module(nn.Bilinear(4, 3, 2, false), {a, b})
   end)

   it('nn.MixtureTable', function()
      local g, e = torch.rand(3, 2), {torch.randn(3, 4), torch.randn(3, 4)}
      local y = check.module(nn.MixtureTable(), {g, e})
      assert.near(y[2], e[1][2] * g[2][1] + e[2][2] * g[2][2], 1e-12)
      check.module(nn.MixtureTable(), {g, torch.randn(3, 2, 4)})
   end)
end)

describe('other layers', function()
   before_each(function() torch.manualSeed(84) end)

   it('nn.Padding', function()
      local x = torch.randn(3, 2)
      local y = check.module(nn.Padding(1, 2), x)
      assert.same({5, 2}, sizes(y))
      assert.near(y:narrow(1, 1, 3):clone(), x, 0)
      assert.equal(-2, nn.Padding(1, -2, 2, -1):forward(x)[1]:sum())
      assert.near(nn.Padding(1, 1, 2, 9, 2):forward(x)[3], torch.Tensor {9, 9}, 0)
      assert.same({3, 4}, sizes(nn.Padding(1, 2, 1):forward(x)))
   end)

   it('nn.GatedLinearUnit, nn.CReLU, nn.PixelShuffle, nn.Collapse', function()
      local x = torch.randn(3, 4)
      local y = check.module(nn.GatedLinearUnit(), x)
      assert.near(y[2][1], x[2][1] / (1 + math.exp(-x[2][3])), 1e-12)
      local c = check.module(nn.CReLU(1), x)
      assert.same({3, 8}, sizes(c))
      assert.near(c:narrow(2, 1, 4) - c:narrow(2, 5, 4), x, 1e-12)
      local p = torch.randn(2, 8, 2, 3)
      local q = check.module(nn.PixelShuffle(2), p)
      assert.same({2, 2, 4, 6}, sizes(q))
      assert.equal(p[1][6][2][3], q[1][2][3][6])
      assert.same({2, 24}, sizes(check.module(nn.Collapse(2), torch.randn(2, 4, 6))))
   end)

   it('nn.Copy', function()
      local m, x = nn.Copy('torch.FloatTensor', 'torch.DoubleTensor'), torch.randn(3):float()
      assert.equal('torch.DoubleTensor', m:forward(x):type())
      assert.equal('torch.FloatTensor', m:backward(x, torch.randn(3)):type())
   end)

   it('nn.GradientReversal, nn.ZeroGrad, nn.L1Penalty, nn.Constant', function()
      local x, g = torch.randn(3, 4), torch.randn(3, 4)
      local m = nn.GradientReversal(0.5)
      assert.near(m:forward(x), x, 0)
      assert.near(m:backward(x, g), g * -0.5, 0)
      assert.equal(0, nn.ZeroGrad():backward(x, g):abs():sum())
      local l = nn.L1Penalty(0.1)
      l:forward(x)
      assert.near(l.loss, 0.1 * torch.abs(x):sum(), 1e-12)
      assert.near(l:backward(x, g), g + torch.sign(x) * 0.1, 1e-12)
      local k = nn.Constant(torch.Tensor {1, 2}, 1)
      assert.near(k:forward(x), torch.Tensor {{1, 2}, {1, 2}, {1, 2}}, 0)
      assert.equal(0, k:backward(x, g):sum())
   end)

   it('nn.Index and nn.MaskedSelect', function()
      local x = torch.randn(4, 3)
      local y = check.module(nn.Index(1), {x, torch.LongTensor {4, 1, 4}})
      assert.near(y[1], x[4], 0)
      local mask = x:gt(0)
      local s = nn.MaskedSelect():forward {x, mask}
      assert.equal(mask:sum(), s:nElement())
   end)

   it('nn.ZipTable and nn.ZipTableOneToMany', function()
      local y = nn.ZipTable():forward {{1, 2}, {3, 4}}
      assert.same({{1, 3}, {2, 4}}, y)
      local a, b, c = torch.randn(2), torch.randn(2), torch.randn(2)
      local m = nn.ZipTableOneToMany()
      local z = m:forward {a, {b, c}}
      assert.is_true(rawequal(z[2][1], a) and rawequal(z[2][2], c))
      local d = m:backward({a, {b, c}}, {{b, a}, {c, a}})
      assert.near(d[1], b + c, 1e-12)
   end)

   it('nn.SpatialReflectionPadding and nn.SpatialReplicationPadding', function()
      local x = torch.randn(2, 4, 5)
      local function expect(y, at)
         assert.same({2, 4 + 1 + 3, 5 + 2 + 1}, sizes(y))
         for i = 1, 8 do
            for j = 1, 8 do assert.equal(x[2][at(i - 1, 4)][at(j - 2, 5)], y[2][i][j]) end
         end
      end
      expect(check.module(nn.SpatialReflectionPadding(2, 1, 1, 3), x), function(k, n)
         if k < 1 then k = 2 - k end
         return k > n and 2 * n - k or k
      end)
      expect(check.module(nn.SpatialReplicationPadding(2, 1, 1, 3), x), function(k, n) return math.min(math.max(k, 1), n) end)
      check.module(nn.SpatialReflectionPadding(1), torch.randn(2, 2, 3, 3))
      assert.has_error(function() nn.SpatialReflectionPadding(4):forward(x) end)
   end)

   it('nn.RReLU', function()
      local m, x = nn.RReLU(0.1, 0.4), torch.randn(50, 50)
      local y = m:forward(x):clone()
      local slope = torch.cdiv(y, x)
      assert.is_true(slope:min() >= 0.1 and slope:max() <= 1)
      assert.near(m:backward(x, torch.ones(50, 50)), slope, 1e-12)
      m:evaluate()
      check.module(m, torch.randn(3, 4))
      assert.near(m:forward(torch.Tensor {-2, 2}), torch.Tensor {-0.5, 2}, 1e-12)
   end)

   it('nn.WhiteNoise', function()
      local m, x = nn.WhiteNoise(0, 0.5), torch.zeros(100, 100)
      assert.is_true(math.abs(m:forward(x):std() - 0.5) < 0.03)
      m:evaluate()
      assert.equal(0, m:forward(x):abs():sum())
   end)
end)

describe('criterions with a margin', function()
   before_each(function() torch.manualSeed(85) end)

   it('nn.MarginCriterion, nn.SoftMarginCriterion, nn.L1Cost', function()
      local x, y = torch.randn(4), torch.Tensor {1, -1, -1, 1}
      local hinge, soft = 0, 0
      for i = 1, 4 do
         hinge = hinge + math.max(0, 1 - y[i] * x[i]) / 4
         soft = soft + math.log(1 + math.exp(-y[i] * x[i])) / 4
      end
      assert.near(check.criterion(nn.MarginCriterion(), x, y), hinge, 1e-12)
      assert.near(check.criterion(nn.SoftMarginCriterion(), x, y), soft, 1e-12)
      assert.near(check.criterion(nn.L1Cost(), x, y), torch.abs(x):sum(), 1e-12)
   end)

   it('nn.HingeEmbeddingCriterion and nn.MarginRankingCriterion', function()
      local x, y = torch.rand(4) * 2, torch.Tensor {1, -1, -1, 1}
      local s, r = 0, 0
      local b = torch.rand(4)
      for i = 1, 4 do
         s = s + (y[i] == 1 and x[i] or math.max(0, 1 - x[i])) / 4
         r = r + math.max(0, 0.1 - y[i] * (x[i] - b[i])) / 4
      end
      assert.near(check.criterion(nn.HingeEmbeddingCriterion(), x, y), s, 1e-12)
      assert.near(check.criterion(nn.MarginRankingCriterion(0.1), {x, b}, y), r, 1e-12)
   end)

   it('nn.CosineEmbeddingCriterion', function()
      local a, b, y = torch.randn(3, 4), torch.randn(3, 4), torch.Tensor {1, -1, 1}
      local s = 0
      for i = 1, 3 do
         local c = torch.dot(a[i], b[i]) / a[i]:norm() / b[i]:norm()
         s = s + (y[i] == 1 and 1 - c or math.max(0, c - 0.2)) / 3
      end
      assert.near(check.criterion(nn.CosineEmbeddingCriterion(0.2), {a, b}, y), s, 1e-8)
   end)

   it('nn.MultiMarginCriterion', function()
      local x, y = torch.randn(3, 4), torch.LongTensor {2, 4, 1}
      for p = 1, 2 do
         local s = 0
         for i = 1, 3 do
            for k = 1, 4 do
               if k ~= y[i] then s = s + math.max(0, 1 - x[i][y[i]] + x[i][k]) ^ p / 12 end
            end
         end
         assert.near(check.criterion(nn.MultiMarginCriterion(p), x, y, {integerTarget = true}), s, 1e-10)
      end
   end)

   it('nn.MultiLabelSoftMarginCriterion and nn.WeightedMSECriterion', function()
      local x, y, w = torch.randn(3, 4), torch.rand(3, 4):gt(0.5):double(), torch.rand(3, 4)
      assert.near(check.criterion(nn.MultiLabelSoftMarginCriterion(), x, y), nn.BCECriterion():forward(torch.sigmoid(x), y), 1e-8)
      assert.near(check.criterion(nn.WeightedMSECriterion(w), x, y), nn.MSECriterion():forward(x, torch.cmul(y, w)), 1e-12)
   end)
end)

describe('nn.StochasticGradient', function()
   it('trains', function()
      torch.manualSeed(86)
      local x, y = torch.randn(20, 3), torch.Tensor(20, 1)
      for i = 1, 20 do y[i][1] = x[i][1] - 2 * x[i][3] end
      local data = {size = function() return 20 end}
      for i = 1, 20 do data[i] = {x[i], y[i]} end
      local net, criterion = nn.Sequential():add(nn.Linear(3, 1)), nn.MSECriterion()
      local trainer = nn.StochasticGradient(net, criterion)
      trainer.verbose, trainer.maxIteration, trainer.learningRate = false, 30, 0.05
      trainer:train(data)
      assert.is_true(criterion:forward(net:forward(x), y) < 1e-2)
   end)
end)
