-- Containers, sparse layers, weight normalisation and criterions that few programs use: values from definitions, gradients.
local check = require 'support.module_check'

local function sizes(t) return t:size():totable() end

describe('weight normalisation', function()
   before_each(function() torch.manualSeed(91) end)

   it('nn.WeightNorm is the module with weight g v / ||v||', function()
      for _, make in ipairs {function() return nn.Linear(4, 3) end, function() return nn.SpatialFullConvolution(2, 3, 2, 2), 2 end} do
         local inner, dim = make()
         local m = nn.WeightNorm(inner, dim)
         local x = dim and torch.randn(1, 2, 3, 3) or torch.randn(2, 4)
         local y = m:forward(x):clone()
         local norm = m.v[2]:norm()
         local row = inner.weight:select(dim or 1, 2):contiguous():view(-1)
         assert.near(row, m.v[2] * (m.g[2] / math.sqrt(norm ^ 2 + 1e-4)), 1e-12)
         local dy = torch.randn(unpack(sizes(y)))
         m:zeroGradParameters()
         m:forward(x)
         m:backward(x, dy)
         local params, grads = m:parameters()
         for i = 1, 3 do
            local d = check.differences(params[i], function() return torch.cmul(m:forward(x), dy):sum() end, 1e-5)
            assert.near(grads[i], d, 1e-6)
         end
         assert.near(m:clone():forward(x), y, 1e-12)
         m:evaluate()
         assert.near(m:forward(x), y, 1e-12)
      end
   end)

   it('nn.LinearWeightNorm', function()
      local linear, x = nn.Linear(4, 3), torch.randn(2, 4)
      local m = nn.LinearWeightNorm.fromLinear(linear)
      assert.near(m:forward(x), linear:forward(x), 1e-12)
      m.g:mul(2)
      assert.near(m:toLinear():forward(x), m:forward(x), 1e-12)
      check.module(m, x, {noTape = true})
   end)

   it('nn.LayerNormalization', function()
      local x = torch.randn(3, 5)
      local y = check.module(nn.LayerNormalization(5), x, {noFloat = true, tolerance = 1e-5})
      assert.near(y, nn.LayerNorm(5, 1e-12):forward(x), 1e-6)
   end)
end)

describe('sparse layers', function()
   before_each(function() torch.manualSeed(92) end)

   it('nn.SparseLinear equals nn.Linear', function()
      local m, linear = nn.SparseLinear(6, 3), nn.Linear(6, 3)
      linear.weight:copy(m.weight)
      linear.bias:copy(m.bias)
      local dense = torch.zeros(2, 6)
      dense[1][2], dense[1][5], dense[2][1] = 0.5, -2, 3
      local x = {torch.Tensor {{2, 0.5}, {5, -1}, {5, -1}}, torch.Tensor {{1, 3}}}
      local dy = torch.randn(2, 3)
      assert.near(m:forward(x), linear:forward(dense), 1e-12)
      m:zeroGradParameters()
      linear:zeroGradParameters()
      m:backward(x, dy)
      linear:backward(dense, dy)
      assert.near(m.gradWeight, linear.gradWeight, 1e-12)
      assert.near(m.gradBias, linear.gradBias, 1e-12)
      assert.near(m:forward(x[1]), linear:forward(dense[1]), 1e-12)
      local batch = torch.Tensor {{{2, 0.5}, {5, -2}}, {{1, 1}, {1, 2}}}
      assert.near(m:forward(batch), linear:forward(dense), 1e-12)
      m.doGradInput = true
      m:forward(x)
      assert.near(m:updateGradInput(x, dy)[2]:select(2, 2), linear:updateGradInput(dense, dy)[2], 1e-12)
      assert.error_matches(function() m:forward(torch.Tensor {{7, 1}}) end, 'got 7 to 7, need 1 to 6')
   end)

   it('nn.IndexLinear equals nn.Linear in all its input forms', function()
      local m, linear = nn.IndexLinear(6, 3, true), nn.Linear(6, 3)
      linear.weight:copy(m.weight:t())
      linear.bias:copy(m.bias)
      local dense, dy = torch.zeros(2, 6), torch.randn(2, 3)
      dense[1][2], dense[1][5], dense[2][1] = 0.5, -2, 3
      local keys, values = {torch.LongTensor {2, 5}, torch.LongTensor {1}}, {torch.Tensor {0.5, -2}, torch.Tensor {3}}
      local flat = {torch.cat(keys, 1), torch.cat(values, 1), torch.LongTensor {2, 1}}
      local want = linear:forward(dense)
      for _, x in ipairs {{keys, values}, flat} do
         assert.near(m:forward(x), want, 1e-12)
         m:zeroGradParameters()
         linear:zeroGradParameters()
         local dx, dense_dx = m:backward(x, dy), linear:backward(dense, dy)
         assert.near(m.gradWeight, linear.gradWeight:t(), 1e-12)
         assert.near(m.gradBias, linear.gradBias, 1e-12)
         assert.near(dx[2][2], dense_dx[2], 1e-12)
      end
      assert.near(m:forward {keys[1], values[1]}, want[1], 1e-12)
   end)

   it('nn.IndexLinear normalises by the largest value seen', function()
      local m = nn.IndexLinear(4, 2, false, nil, nil, nil, true)
      local w = m.weight:narrow(2, 5, 2)
      m:forward {torch.LongTensor {1, 3}, torch.Tensor {-4, 2}}
      assert.near(m.output, m.bias - w[1] + w[3], 1e-12)
      m:forward {torch.LongTensor {1}, torch.Tensor {2}}
      assert.near(m.output, m.bias + w[1] * 0.5, 1e-12)
      assert.equal(4, m.weight[1][1])
      m:evaluate()
      m:forward {torch.LongTensor {3}, torch.Tensor {9}}
      assert.near(m.output, m.bias + w[3], 1e-12)
      assert.equal(2, m.weight[3][1])
   end)

   it('nn.PartialLinear computes chosen outputs', function()
      local m, x = nn.PartialLinear(4, 5), torch.randn(3, 4)
      m.bias:normal()
      local all = check.module(m, x, {noTape = true, noFloat = true}):clone()
      m:setPartition(torch.LongTensor {2, 5})
      local y = check.module(m, x, {noTape = true, noFloat = true})
      assert.near(y, all:index(2, torch.LongTensor {2, 5}), 1e-12)
      m:resetPartition()
      assert.near(m:forward(x), all, 1e-12)
      assert.equal('nn.PartialLinear(4 -> 5)', tostring(m))
   end)

   it('nn.OneHot', function()
      local m = nn.OneHot(3)
      assert.near(m:forward(torch.LongTensor {{1, 3}}), torch.Tensor {{{1, 0, 0}, {0, 0, 1}}}, 0)
      assert.near(m:forward(2), torch.Tensor {0, 1, 0}, 0)
      assert.equal('torch.FloatTensor', m:float():forward(torch.FloatTensor {2}):type())
      assert.error_matches(function() m:forward(torch.LongTensor {4}) end, 'need 1 to 3')
   end)

   it('nn.Kmeans moves centres to the means of their samples', function()
      local m = nn.Kmeans(2, 2)
      m.weight:copy(torch.Tensor {{0, 0}, {5, 5}})
      local x = torch.Tensor {{1, 0}, {0, 2}, {6, 4}, {0, 1}}
      assert.near(m:forward(x), torch.Tensor {1, 1, 2, 1}, 0)
      assert.near(m.loss, 1 + 4 + 2 + 1, 1e-12)
      m:zeroGradParameters()
      m:backward(x, m.output)
      m:updateParameters(1)
      assert.near(m.weight, torch.Tensor {{1 / 3, 1}, {6, 4}}, 1e-12)
      m:initKmeansPlus(x, 1)
      assert.is_true(m:forward(x) ~= nil and m.loss >= 0)
      m:initRandom(x)
      assert.is_true(m:forward(x):max() <= 2)
   end)
end)

describe('containers and tools', function()
   before_each(function() torch.manualSeed(93) end)

   it('nn.Convert', function()
      local x = torch.randn(2, 3, 4, 5)
      assert.near(check.module(nn.Convert('bchw', 'chwb'), x, {noTape = true}), x:permute(2, 3, 4, 1), 0)
      assert.same({2, 60}, sizes(nn.Convert('bchw', 'bf'):forward(x)))
      assert.same({60}, sizes(nn.Convert('chw', 'bf'):forward(x[1])))
      assert.same({3}, sizes(nn.Convert('bt', 'b'):forward(torch.randn(3, 2))))
      assert.equal('torch.DoubleTensor', nn.Convert():forward(torch.IntTensor {1, 2}):type())
      assert.error_matches(function() nn.Convert('bchw', 'bx'):forward(x) end, 'Unrecognized conversion')
   end)

   it('nn.DontCast keeps its type', function()
      local inner = nn.Linear(4, 3)
      local m = nn.DontCast(inner, true)
      local x = torch.randn(2, 4)
      local want = inner:forward(x):clone()
      m:float()
      assert.equal('torch.DoubleTensor', inner.weight:type())
      local y = m:forward(x:float())
      assert.equal('torch.FloatTensor', y:type())
      assert.near(y, want:float(), 1e-6)
      assert.equal('torch.FloatTensor', m:backward(x:float(), y):type())
   end)

   it('nn.NaN, nn.Profile, nn.PrintSize, nn.GPU', function()
      local m, x = nn.NaN(nn.Sqrt(), 'root'), torch.Tensor {4, -1}
      assert.near(m:forward(torch.Tensor {4}), torch.Tensor {2}, 1e-12)
      assert.error_matches(function() m:forward(x) end, 'NaN found in output of module')
      assert.error_matches(function() m:forward(torch.Tensor {0 / 0}) end, 'NaN found in input')
      local printed, old = {}, print
      _G.print = function(...) printed[#printed + 1] = tostring((...)) end
      local p = nn.Profile(nn.Linear(2, 2), 2, 'layer')
      for _ = 1, 2 do p:forward(torch.randn(1, 2)) end
      nn.PrintSize('here'):forward(torch.Tensor(2, 3))
      _G.print = old
      assert.truthy(printed[1]:find '^layer took %d')
      assert.truthy(printed[2]:find '^here:input')
      check.module(nn.GPU(nn.Linear(4, 3), 1), torch.randn(2, 4))
   end)

   it('nn.CAddTensorTable', function()
      local x = {torch.randn(2), {torch.randn(2), torch.randn(2)}}
      local y = check.module(nn.CAddTensorTable(), x)
      assert.near(y[2], x[1] + x[2][2], 1e-12)
   end)

   it('nn.WeightedEuclidean', function()
      local m, x = nn.WeightedEuclidean(4, 3), torch.randn(2, 4)
      m.diagCov:uniform(0.5, 1.5)
      local y = check.module(m, x)
      assert.near(y[2][3], torch.cmul(m.diagCov:select(2, 3), x[2] - m.weight:select(2, 3)):norm(), 1e-10)
   end)
end)

describe('criterions', function()
   before_each(function() torch.manualSeed(94) end)

   it('nn.MultiLabelMarginCriterion', function()
      local x, t = torch.randn(2, 4), torch.LongTensor {{2, 4, 0, 3}, {1, 0, 0, 0}}
      local loss = check.criterion(nn.MultiLabelMarginCriterion(), x, t, {integerTarget = true})
      local sum = 0
      for i, right in ipairs {{[2] = true, [4] = true}, {[1] = true}} do
         for y in pairs(right) do
            for d = 1, 4 do
               if not right[d] then sum = sum + math.max(0, 1 - x[i][y] + x[i][d]) end
            end
         end
      end
      assert.near(loss, sum / 8, 1e-12)
   end)

   it('nn.DistanceRatioCriterion and nn.L1HingeEmbeddingCriterion', function()
      local x = {torch.rand(3), torch.rand(3)}
      local loss, want = check.criterion(nn.DistanceRatioCriterion(), x), 0
      for i = 1, 3 do want = want - math.log(math.exp(-x[1][i]) / (math.exp(-x[1][i]) + math.exp(-x[2][i]))) end
      assert.near(loss, want / 3, 1e-12)
      local distance = torch.abs(x[1] - x[2]):sum()
      assert.near(check.criterion(nn.L1HingeEmbeddingCriterion(2), x, 1), distance, 1e-12)
      assert.near(check.criterion(nn.L1HingeEmbeddingCriterion(2), x, -1), math.max(0, 2 - distance), 1e-12)
   end)

   it('nn.ClassSimplexCriterion', function()
      local c, x = nn.ClassSimplexCriterion(4), torch.randn(3, 4)
      for i = 1, 4 do
         assert.near(c.simplex[i]:norm(), 1, 1e-12)
         for j = 1, i - 1 do assert.near(c.simplex[i]:dot(c.simplex[j]), -1 / 3, 1e-12) end
      end
      local loss = check.criterion(c, x, torch.LongTensor {2, 4, 1}, {integerTarget = true})
      assert.near(loss, torch.pow(x - c.simplex:index(1, torch.LongTensor {2, 4, 1}), 2):mean(), 1e-12)
      assert.same({3, 1}, c:getTopPrediction(c.simplex:index(1, torch.LongTensor {3, 1})):totable())
   end)

   it('nn.SpatialAutoCropMSECriterion, nn.ModuleCriterion, nn.CriterionTable', function()
      local x, t = torch.randn(1, 2, 3), torch.randn(1, 4, 6)
      local loss = check.criterion(nn.SpatialAutoCropMSECriterion(), x, t)
      assert.near(loss, torch.pow(x - t:narrow(2, 2, 2):narrow(3, 2, 3), 2):mean(), 1e-12)
      local m = nn.ModuleCriterion(nn.MSECriterion(), nn.MulConstant(2), nn.AddConstant(1))
      local a, b = torch.randn(3), torch.randn(3)
      assert.near(m:forward(a, b), torch.pow(a * 2 - b - 1, 2):mean(), 1e-12)
      local d = check.differences(a, function() return m:forward(a, b) end, 1e-5)
      m:forward(a, b)
      assert.near(m:backward(a, b), d, 1e-8)
      local table = nn.CriterionTable(nn.MSECriterion())
      assert.near(table:forward {a, b}, torch.pow(a - b, 2):mean(), 1e-12)
      assert.near(table:backward({a, b}, 1)[1], (a - b) * (2 / 3), 1e-12)
   end)
end)
