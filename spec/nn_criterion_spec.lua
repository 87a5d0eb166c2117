-- Criterions: losses from the definitions in plain Lua, gradients, weights, averaging, text.
local check = require 'support.module_check'
_G.spec = _G.spec or {}
local spec = _G.spec

describe('criterions', function()
   before_each(function() torch.manualSeed(71) end)

   -- Sum over elements of f(x, t).
   local function total(x, t, f)
      local xs, ts, s = x:contiguous():view(-1), t:contiguous():view(-1), 0
      for i = 1, xs:size(1) do s = s + f(xs[i], ts[i]) end
      return s
   end

   local elementwise = {
      MSECriterion = function(x, t) return (x - t) ^ 2 end,
      AbsCriterion = function(x, t) return math.abs(x - t) end,
      SmoothL1Criterion = function(x, t)
         local d = math.abs(x - t)
         return d < 1 and 0.5 * d * d or d - 0.5
      end,
   }
   for name, f in pairs(elementwise) do
      it('nn.' .. name, function()
         local x, t = torch.randn(3, 4) * 2, torch.randn(3, 4)
         assert.near(check.criterion(nn[name](), x, t), total(x, t, f) / 12, 1e-10)
         assert.near(check.criterion(nn[name](false), x, t), total(x, t, f), 1e-10)
      end)
   end

   it('nn.BCECriterion and nn.BCEWithLogitsCriterion', function()
      local x, t = torch.rand(3, 4) * 0.8 + 0.1, torch.rand(3, 4):gt(0.5):double()
      local function f(p, y) return -(y * math.log(p) + (1 - y) * math.log(1 - p)) end
      assert.near(check.criterion(nn.BCECriterion(), x, t), total(x, t, f) / 12, 1e-8)
      assert.near(check.criterion(nn.BCECriterion(nil, false), x, t), total(x, t, f), 1e-8)
      local w = torch.Tensor {1, 2, 0.5, 3}
      local weighted = 0
      for i = 1, 3 do
         for k = 1, 4 do weighted = weighted + w[k] * f(x[i][k], t[i][k]) / 12 end
      end
      assert.near(check.criterion(nn.BCECriterion(w), x, t), weighted, 1e-8)
      local z = torch.log(torch.cdiv(x, -x + 1))
      assert.near(check.criterion(nn.BCEWithLogitsCriterion(), z, t), total(x, t, f) / 12, 1e-8)
      assert.near(nn.BCEWithLogitsCriterion():forward(torch.Tensor {800, -800}, torch.Tensor {1, 0}), 0, 1e-12)
   end)

   it('nn.DistKLDivCriterion', function()
      local x, t = torch.log(torch.rand(3, 4) + 0.1), torch.rand(3, 4)
      t[1][1] = 0
      local function f(l, p) return p > 0 and p * (math.log(p) - l) or 0 end
      assert.near(check.criterion(nn.DistKLDivCriterion(), x, t), total(x, t, f) / 12, 1e-10)
   end)

   local function nll(x, y, w, average, ignore)
      local s, n = 0, 0
      for i = 1, x:size(1) do
         if y[i] ~= ignore then
            local k = w and w[y[i]] or 1
            s, n = s - k * x[i][y[i]], n + k
         end
      end
      return average and s / n or s
   end

   it('nn.ClassNLLCriterion', function()
      local x, y, w = torch.log(torch.rand(4, 3)), torch.LongTensor {3, 1, 2, 1}, torch.Tensor {0.5, 2, 1}
      local o = {integerTarget = true}
      assert.near(check.criterion(nn.ClassNLLCriterion(), x, y, o), nll(x, y, nil, true), 1e-10)
      assert.near(check.criterion(nn.ClassNLLCriterion(w), x, y, o), nll(x, y, w, true), 1e-10)
      assert.near(check.criterion(nn.ClassNLLCriterion(w, false), x, y, o), nll(x, y, w, false), 1e-10)
      assert.near(check.criterion(nn.ClassNLLCriterion(nil, true, 1), x, y, o), nll(x, y, nil, true, 1), 1e-10)
      assert.near(check.criterion(nn.ClassNLLCriterion(), x, y:double()), nll(x, y, nil, true), 1e-10)
      assert.near(check.criterion(nn.ClassNLLCriterion(), x[2], 1), -x[2][1], 1e-10)
      assert.near(check.criterion(nn.ClassNLLCriterion(), x[2], torch.LongTensor {3}, o), -x[2][3], 1e-10)
      assert.same({3}, nn.ClassNLLCriterion():backward(x[2], 1):size():totable())
   end)

   it('nn.ClassNLLCriterion names labels out of range', function()
      local x = torch.randn(2, 3)
      for _, bad in ipairs {0, 4} do
         assert.has_error(function() nn.ClassNLLCriterion():forward(x, torch.LongTensor {1, bad}) end)
      end
      assert.has_error(function() nn.ClassNLLCriterion():forward(x, torch.LongTensor {1, 2, 3}) end)
   end)

   it('nn.CrossEntropyCriterion', function()
      local x, y, w = torch.randn(4, 3), torch.LongTensor {3, 1, 2, 1}, torch.Tensor {0.5, 2, 1}
      local logp = nn.LogSoftMax():forward(x)
      local o = {integerTarget = true}
      assert.near(check.criterion(nn.CrossEntropyCriterion(), x, y, o), nll(logp, y, nil, true), 1e-10)
      assert.near(check.criterion(nn.CrossEntropyCriterion(w), x, y, o), nll(logp, y, w, true), 1e-10)
      assert.near(check.criterion(nn.CrossEntropyCriterion(w, false), x, y, o), nll(logp, y, w, false), 1e-10)
      assert.near(check.criterion(nn.CrossEntropyCriterion(), x[3], 2), -logp[3][2], 1e-10)
      assert.same({1, 3}, nn.CrossEntropyCriterion():backward(x:narrow(1, 1, 1), torch.LongTensor {2}):size():totable())
      check.criterion(nn.CrossEntropyCriterion(), x:view(4, 3, 1, 1), y, o)
   end)

   it('nn.SpatialClassNLLCriterion', function()
      local x = torch.log(torch.rand(2, 3, 2, 2))
      local y = torch.LongTensor {{{1, 2}, {3, 1}}, {{2, 2}, {3, 3}}}
      local s = 0
      for b = 1, 2 do
         for i = 1, 2 do
            for j = 1, 2 do s = s - x[b][y[b][i][j]][i][j] end
         end
      end
      assert.near(check.criterion(nn.SpatialClassNLLCriterion(), x, y, {integerTarget = true}), s / 8, 1e-10)
   end)

   it('nn.KLDCriterion', function()
      local mu, lv = torch.randn(3, 2), torch.randn(3, 2)
      local s = total(mu, lv, function(m, l) return 0.5 * (m * m + math.exp(l) - l - 1) end)
      assert.near(check.criterion(nn.KLDCriterion(), {mu, lv}), s, 1e-10)
   end)

   it('nn.MultiCriterion', function()
      local x, t = torch.randn(3, 4), torch.randn(3, 4)
      local m = nn.MultiCriterion():add(nn.MSECriterion()):add(nn.AbsCriterion(), 0.5)
      local loss = check.criterion(m, x, t)
      assert.near(loss, nn.MSECriterion():forward(x, t) + 0.5 * nn.AbsCriterion():forward(x, t), 1e-12)
   end)

   it('nn.ParallelCriterion', function()
      local x, t = {torch.randn(3, 4), torch.randn(5)}, {torch.randn(3, 4), torch.randn(5)}
      local m = nn.ParallelCriterion():add(nn.MSECriterion(), 2):add(nn.AbsCriterion())
      local loss = check.criterion(m, x, t)
      assert.near(loss, 2 * nn.MSECriterion():forward(x[1], t[1]) + nn.AbsCriterion():forward(x[2], t[2]), 1e-12)
      local r = nn.ParallelCriterion(true):add(nn.MSECriterion()):add(nn.MSECriterion())
      check.criterion(r, {torch.randn(3), torch.randn(3)}, torch.randn(3))
   end)

   it('call syntax, identity of gradInput', function()
      local c, x, t = nn.MSECriterion(), torch.randn(3), torch.randn(3)
      local dx = c.gradInput
      local loss, g = c(x, t)
      assert.near(loss, c.output, 0)
      assert.is_true(rawequal(dx, g))
   end)

   it('backward without forward', function()
      local x, t = torch.randn(3), torch.randn(3)
      assert.near(nn.MSECriterion():backward(x, t), (x - t) * (2 / 3), 1e-12)
   end)

   it('may be written by hand', function()
      local Half, parent = torch.class('spec.HalfSquare', 'nn.Criterion')
      function Half:updateOutput(input, target)
         self.output = 0.5 * torch.pow(input - target, 2):sum()
         return self.output
      end
      function Half:updateGradInput(input, target)
         self.gradInput:resizeAs(input):copy(input):add(-1, target)
         return self.gradInput
      end
      assert.equal('function', type(parent.__init))
      local c, x, t = spec.HalfSquare(), torch.randn(3), torch.randn(3)
      c:forward(x, t)
      assert.near(c:backward(x, t), x - t, 1e-12)
   end)
end)
