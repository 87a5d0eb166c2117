-- Elementwise modules: every value against its definition in plain Lua, gradients, text.
local check = require 'support.module_check'

local function sigmoid(v) return 1 / (1 + math.exp(-v)) end

-- Normal distribution function, by its series (|v| < 4).
local function phi(v)
   local term, sum, k = v, v, 0
   repeat
      k = k + 1
      term = -term * v * v / (2 * k)
      local add = term / (2 * k + 1)
      sum = sum + add
   until math.abs(add) < 1e-17
   return 0.5 + sum / math.sqrt(2 * math.pi)
end

-- Made anew for each test: module, definition, lowest and highest input.
local cases = {
   Abs = {function() return nn.Abs() end, math.abs},
   Exp = {function() return nn.Exp() end, math.exp},
   Log = {function() return nn.Log() end, math.log, 0.2, 3},
   Square = {function() return nn.Square() end, function(v) return v * v end},
   Sqrt = {function() return nn.Sqrt() end, math.sqrt, 0.2, 3},
   Power = {function() return nn.Power(3) end, function(v) return v ^ 3 end, 0.2, 2},
   Tanh = {function() return nn.Tanh() end, math.tanh},
   Sigmoid = {function() return nn.Sigmoid() end, sigmoid},
   ReLU = {function() return nn.ReLU() end, function(v) return math.max(v, 0) end},
   ReLU6 = {function() return nn.ReLU6() end, function(v) return math.min(math.max(v, 0), 6) end, -3, 9},
   LeakyReLU = {function() return nn.LeakyReLU(0.2) end, function(v) return v > 0 and v or 0.2 * v end},
   ELU = {function() return nn.ELU(0.7) end, function(v) return v > 0 and v or 0.7 * (math.exp(v) - 1) end},
   HardTanh = {function() return nn.HardTanh(-0.5, 0.8) end, function(v) return math.min(math.max(v, -0.5), 0.8) end},
   Clamp = {function() return nn.Clamp(-0.3, 0.9) end, function(v) return math.min(math.max(v, -0.3), 0.9) end},
   SoftPlus = {function() return nn.SoftPlus(2) end, function(v) return math.log(1 + math.exp(2 * v)) / 2 end},
   SoftSign = {function() return nn.SoftSign() end, function(v) return v / (1 + math.abs(v)) end},
   SoftShrink = {function() return nn.SoftShrink() end, function(v) return v > 0.5 and v - 0.5 or v < -0.5 and v + 0.5 or 0 end},
   HardShrink = {function() return nn.HardShrink() end, function(v) return math.abs(v) > 0.5 and v or 0 end},
   TanhShrink = {function() return nn.TanhShrink() end, function(v) return v - math.tanh(v) end},
   LogSigmoid = {function() return nn.LogSigmoid() end, function(v) return math.log(sigmoid(v)) end},
   Threshold = {function() return nn.Threshold(0.1, -0.4) end, function(v) return v > 0.1 and v or -0.4 end},
   GELU = {function() return nn.GELU() end, function(v) return v * phi(v) end},
   SiLU = {function() return nn.SiLU() end, function(v) return v * sigmoid(v) end},
   MulConstant = {function() return nn.MulConstant(-1.5) end, function(v) return -1.5 * v end},
   AddConstant = {function() return nn.AddConstant(2.5) end, function(v) return v + 2.5 end},
   Identity = {function() return nn.Identity() end, function(v) return v end},
}

describe('elementwise modules', function()
   for name, case in pairs(cases) do
      it('nn.' .. name, function()
         torch.manualSeed(11)
         local make, f, lo, hi = unpack(case)
         lo, hi = lo or -2, hi or 2
         local x = torch.rand(3, 4, 2):mul(hi - lo):add(lo)
         local y = check.module(make(), x, {noTape = name == 'Sqrt' or nil})
         local xs, ys = x:view(-1), y:view(-1)
         for i = 1, xs:size(1) do assert.near(ys[i], f(xs[i]), 1e-10) end
      end)
   end

   it('nn.Sqrt has gradient 0 at 0', function()
      local m, x = nn.Sqrt(), torch.Tensor {0, 4}
      m:forward(x)
      assert.near(m:backward(x, torch.ones(2)), torch.Tensor {0, 0.25}, 1e-12)
   end)

   it('leaves the input alone, whatever the in-place flag', function()
      for _, m in ipairs {nn.ReLU(true), nn.LeakyReLU(0.1, true), nn.ELU(1, true), nn.Threshold(0, 0, true), nn.MulConstant(2, true),
         nn.AddConstant(2, true), nn.HardTanh(-1, 1, true)} do
         local x = torch.randn(3, 4)
         local before = x:clone()
         m:backward(x, torch.randn(3, 4), m:forward(x) and 1)
         assert.near(x, before, 0)
      end
   end)

   it('prints as the original does', function()
      assert.equal('nn.ReLU', tostring(nn.ReLU()))
      assert.equal('nn.LeakyReLU(0.2)', tostring(nn.LeakyReLU(0.2)))
      assert.equal('nn.ELU (alpha:1.000000)', tostring(nn.ELU()))
      assert.equal('nn.Dropout(0.500000)', tostring(nn.Dropout()))
   end)

   it('refuses a threshold that in-place processing cannot have', function()
      assert.has_error(function() nn.Threshold(0, 1, true) end)
   end)
end)

describe('softmax family', function()
   local function softmax(v)
      local e, sum = {}, 0
      for i = 1, #v do
         e[i] = math.exp(v[i])
         sum = sum + e[i]
      end
      for i = 1, #v do e[i] = e[i] / sum end
      return e
   end

   local function along(x, y, f)
      for i = 1, x:size(1) do
         local want = f(x[i]:totable())
         for k = 1, #want do assert.near(y[i][k], want[k], 1e-10) end
      end
   end

   before_each(function() torch.manualSeed(12) end)

   it('nn.SoftMax, nn.LogSoftMax, nn.SoftMin of a batch', function()
      local x = torch.randn(4, 5)
      along(x, check.module(nn.SoftMax(), x), softmax)
      along(x, check.module(nn.LogSoftMax(), x), function(v)
         local e = softmax(v)
         for i = 1, #e do e[i] = math.log(e[i]) end
         return e
      end)
      along(x, check.module(nn.SoftMin(), x), function(v)
         for i = 1, #v do v[i] = -v[i] end
         return softmax(v)
      end)
   end)

   it('works along planes in 1, 3 and 4 dimensions', function()
      for _, m in ipairs {nn.SoftMax(), nn.SpatialSoftMax()} do
         local x = torch.randn(2, 3, 4, 5)
         local y = check.module(m, x)
         assert.near(y:sum(2):squeeze(), torch.ones(2, 4, 5), 1e-10)
         assert.near(m:forward(x[1]), y[1], 1e-12)
         assert.near(m:forward(torch.randn(6)):sum(), 1, 1e-12)
      end
      check.module(nn.SpatialLogSoftMax(), torch.randn(2, 3, 2, 2))
   end)

   it('keeps large scores finite', function()
      local y = nn.LogSoftMax():forward(torch.Tensor {{1000, 0}})
      assert.near(y, torch.Tensor {{0, -1000}}, 1e-12)
      assert.near(nn.LogSigmoid():forward(torch.Tensor {-800, 800}), torch.Tensor {-800, 0}, 1e-12)
   end)

   it('names a tensor of five dimensions', function()
      assert.has_error(function() nn.SoftMax():forward(torch.randn(1, 1, 1, 1, 1)) end)
   end)
end)

describe('dropout', function()
   before_each(function() torch.manualSeed(13) end)

   it('zeroes with probability p and scales up; backward uses the same mask', function()
      local m, x = nn.Dropout(0.3), torch.ones(200, 200)
      local y = m:forward(x):clone()
      local zeros = y:eq(0):sum() / y:nElement()
      assert.is_true(math.abs(zeros - 0.3) < 0.02)
      assert.near(y:max(), 1 / 0.7, 1e-6)
      assert.near(m:backward(x, x), y, 1e-12)
      assert.near(m:backward(x:clone(), x), y, 1e-12)
   end)

   it('passes everything on in evaluate mode', function()
      local m, x = nn.Dropout(0.3), torch.randn(10, 10)
      m:evaluate()
      assert.near(m:forward(x), x, 0)
      assert.near(m:backward(x, x), x, 0)
      local v1 = nn.Dropout(0.25, true)
      v1:evaluate()
      assert.near(v1:forward(x), x * 0.75, 1e-12)
   end)

   it('repeats with the seed', function()
      local m, x = nn.Dropout(0.5), torch.ones(10, 10)
      torch.manualSeed(1)
      local a = m:forward(x):clone()
      torch.manualSeed(1)
      assert.near(m:forward(x), a, 0)
   end)

   it('drops whole planes', function()
      local m, x = nn.SpatialDropout(0.5), torch.ones(20, 10, 3, 3)
      local y = m:forward(x)
      local planes = y:view(200, 9):sum(2)
      for i = 1, 200 do assert.is_true(planes[i][1] == 0 or planes[i][1] == 9) end
      assert.is_true(math.abs(planes:eq(0):sum() / 200 - 0.5) < 0.15)
      assert.near(m:backward(x, x), y, 0)
      m:evaluate()
      assert.near(m:forward(x), x * 0.5, 0)
      assert.same({4, 2, 2, 2}, nn.VolumetricDropout():forward(torch.ones(4, 2, 2, 2)):size():totable())
   end)

   it('refuses probabilities outside 0 <= p < 1', function()
      assert.has_error(function() nn.Dropout(1) end)
      assert.has_error(function() nn.Dropout(-0.1) end)
   end)
end)
