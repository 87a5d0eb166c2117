-- nn.Linear and the modules with one learnt tensor: values from the definition, gradients, batches, text.
local check = require 'support.module_check'

local function randn(...) return torch.randn(...) end

describe('nn.Linear', function()
   before_each(function() torch.manualSeed(3) end)

   it('is W x + b, row by row', function()
      local m, x = nn.Linear(4, 3), randn(5, 4)
      local y = m:forward(x)
      assert.same({5, 3}, y:size():totable())
      for i = 1, 5 do
         for o = 1, 3 do
            local sum = m.bias[o]
            for k = 1, 4 do sum = sum + m.weight[o][k] * x[i][k] end
            assert.near(y[i][o], sum, 1e-12)
         end
      end
   end)

   it('has right gradients, one sample, batch and without bias', function()
      check.module(nn.Linear(4, 3), randn(5, 4))
      check.module(nn.Linear(4, 3), randn(4))
      check.module(nn.Linear(4, 3, false), randn(2, 4))
      check.batch(nn.Linear(4, 3), randn(5, 4))
   end)

   it('takes more dimensions', function()
      local m, x = nn.Linear(4, 3), randn(2, 5, 4)
      local y = check.module(m, x)
      assert.near(y[2], m:forward(x[2]), 1e-12)
   end)

   it('starts uniform within 1 / sqrt(inputSize)', function()
      local m = nn.Linear(100, 50)
      assert.is_true(m.weight:max() <= 0.1 and m.weight:min() >= -0.1)
      assert.is_true(m.weight:max() > 0.09 and m.weight:min() < -0.09)
      assert.is_true(m.bias:max() <= 0.1 and m.bias:abs():max() > 0.05)
      m:reset(0.02)
      assert.is_true(m.weight:abs():max() <= 0.02 * math.sqrt(3))
   end)

   it('prints as the original does', function()
      assert.equal('nn.Linear(4 -> 3)', tostring(nn.Linear(4, 3)))
      assert.equal('nn.Linear(4 -> 3) without bias', tostring(nn.Linear(4, 3):noBias()))
   end)

   it('keeps the identity of output and gradInput', function()
      local m, x = nn.Linear(4, 3), randn(5, 4)
      local y, dx = m.output, m.gradInput
      m:forward(x)
      m:backward(x, randn(5, 3))
      assert.is_true(rawequal(y, m.output) and rawequal(dx, m.gradInput))
      assert.is_false(m.output:requiresGrad())
   end)

   it('computes gradients for the input that is given', function()
      local m, a, b, g = nn.Linear(4, 3), randn(5, 4), randn(5, 4), randn(5, 3)
      m:zeroGradParameters()
      m:forward(a)
      m:forward(b)
      m:backward(a, g)
      assert.near(m.gradWeight, g:t() * a, 1e-12)
   end)

   it('names sizes that do not fit', function()
      assert.has_error(function() nn.Linear(4, 3):forward(randn(5, 6)) end)
   end)
end)

describe('modules with one learnt tensor', function()
   before_each(function() torch.manualSeed(4) end)

   it('nn.Add', function()
      local m, x = nn.Add(4), randn(3, 4)
      local y = check.module(m, x)
      assert.near(y, x + m.bias:view(1, 4):expand(3, 4), 1e-12)
      check.module(nn.Add(4), randn(4))
      check.module(nn.Add(1, true), randn(3, 4))
   end)

   it('nn.Mul', function()
      local m, x = nn.Mul(), randn(3, 4)
      assert.near(check.module(m, x), x * m.weight[1], 1e-12)
   end)

   it('nn.CMul and nn.CAdd', function()
      for _, size in ipairs {{4}, {1, 4}, {3, 1}, {3, 4}} do
         local x = randn(3, 4)
         local mul, add = nn.CMul(unpack(size)), nn.CAdd(unpack(size))
         local y, z = check.module(mul, x), check.module(add, x)
         local function at(p, i, k)
            local s = #size == 1 and {1, size[1]} or size
            return p:view(unpack(s))[s[1] == 1 and 1 or i][s[2] == 1 and 1 or k]
         end
         for i = 1, 3 do
            for k = 1, 4 do
               assert.near(y[i][k], x[i][k] * at(mul.weight, i, k), 1e-12)
               assert.near(z[i][k], x[i][k] + at(add.bias, i, k), 1e-12)
            end
         end
      end
   end)

   it('nn.PReLU', function()
      local x = randn(3, 4)
      local m = nn.PReLU(4)
      m.weight:uniform(0.1, 0.5)
      local y = check.module(m, x)
      for i = 1, 3 do
         for k = 1, 4 do assert.near(y[i][k], x[i][k] > 0 and x[i][k] or x[i][k] * m.weight[k], 1e-12) end
      end
      check.module(nn.PReLU(), x)
      check.module(nn.PReLU(3), randn(2, 3, 4, 5))
      check.module(nn.PReLU(3), randn(3, 4, 5))
   end)
end)

describe('nn.LookupTable', function()
   before_each(function() torch.manualSeed(5) end)

   local function index(...) return torch.LongTensor {...} end

   it('gives rows, for vectors and matrices of integers of any type', function()
      local m = nn.LookupTable(10, 4)
      local y = m:forward(index(3, 7, 3))
      assert.same({3, 4}, y:size():totable())
      assert.near(y[1], m.weight[3], 0)
      assert.near(y[2], m.weight[7], 0)
      local z = m:forward(torch.LongTensor {{1, 2, 3}, {4, 5, 6}})
      assert.same({2, 3, 4}, z:size():totable())
      assert.near(z[2][3], m.weight[6], 0)
      assert.near(m:forward(torch.DoubleTensor {2, 9})[2], m.weight[9], 0)
   end)

   it('adds gradients of repeated rows', function()
      local m, i, g = nn.LookupTable(5, 3), index(2, 4, 2), randn(3, 3)
      m:zeroGradParameters()
      m:forward(i)
      local dx = m:backward(i, g)
      assert.same({3}, dx:size():totable())
      assert.near(m.gradWeight[2], g[1] + g[3], 1e-12)
      assert.near(m.gradWeight[4], g[2], 1e-12)
      assert.equal(0, m.gradWeight[1]:abs():sum())
      m:backward(i, g, 0.5)
      assert.near(m.gradWeight[4], g[2] * 1.5, 1e-12)
   end)

   it('passes every check', function()
      check.module(nn.LookupTable(6, 3), index(1, 6, 6, 2))
      check.module(nn.LookupTable(6, 3), torch.LongTensor {{1, 6}, {6, 2}})
      check.module(nn.Embedding(6, 3), index(1, 6))
   end)

   it('leaves the padding row alone', function()
      local m, i = nn.LookupTable(5, 3, 2), index(2, 4)
      m:zeroGradParameters()
      m:forward(i)
      m:backward(i, randn(2, 3))
      assert.equal(0, m.gradWeight[2]:abs():sum())
      assert.is_true(m.gradWeight[4]:abs():sum() > 0)
   end)

   it('divides by frequency where asked', function()
      local m, i, g = nn.LookupTable(5, 3):scaleGradByFreq(), index(2, 4, 2), randn(3, 3)
      m:zeroGradParameters()
      m:forward(i)
      m:backward(i, g)
      assert.near(m.gradWeight[2], (g[1] + g[3]) / 2, 1e-12)
   end)

   it('keeps rows within maxNorm', function()
      local m = nn.LookupTable(5, 3, 0, 0.1)
      m:forward(index(1, 2))
      assert.near(m.weight[1]:norm(), 0.1, 1e-5)
      assert.is_true(m.weight[3]:norm() > 0.1)
   end)

   it('names an index out of range', function()
      assert.has_error(function() nn.LookupTable(5, 3):forward(index(6)) end)
      assert.has_error(function() nn.LookupTable(5, 3):forward(index(0)) end)
   end)
end)
