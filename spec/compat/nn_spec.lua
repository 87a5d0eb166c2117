-- Habits of nn programs that the original's suite relies on.
local T, L = torch.Tensor, torch.LongTensor

describe('nn as programs use it', function()
   it('batch normalisation of one sample in evaluate mode has its gradient', function()
      local m = nn.BatchNormalization(3)
      m:forward(torch.randn(4, 3))
      m:evaluate()
      local batch, row = torch.randn(1, 3), torch.randn(3)
      batch[1]:copy(row)
      local dy = torch.randn(3)
      local want = m:backward(batch, (m:forward(batch) and dy:view(1, 3))):clone()
      m:forward(row)
      local got = m:backward(row, dy)
      assert.same({3}, got:size():totable())
      assert.is_true((got - want[1]):abs():max() < 1e-12)
      assert.is_true(got:abs():max() > 0)
   end)

   it('a loss in which nothing counts is 0, and so is its gradient', function()
      for _, c in ipairs{nn.ClassNLLCriterion(nil, nil, -1), nn.ClassNLLCriterion(torch.rand(4), true, 2)} do
         local x, ignored = torch.randn(4), c.ignoreIndex
         assert.equal(0, c:forward(x, ignored))
         assert.equal(0, c:backward(x, ignored):abs():sum())
         local y = L(3):fill(ignored)
         assert.equal(0, c:forward(torch.randn(3, 4), y))
      end
      local step = torch.compile(function(x, y) return nn.ClassNLLCriterion(nil, nil, 2):forward(x, y) end)
      assert.equal(0, step(torch.randn(3, 4), L(3):fill(2)))
   end)

   it('sizeAverage of a cross entropy reaches its part, a setting of the part stays', function()
      local x, y = torch.randn(3, 4), L{1, 2, 3}
      local c = nn.CrossEntropyCriterion()
      local mean = c:forward(x, y)
      c.sizeAverage = false
      assert.near(3 * mean, c:forward(x, y), 1e-12)
      assert.is_false(c.nll.sizeAverage)
      c = nn.CrossEntropyCriterion()
      c.nll.sizeAverage = false
      assert.near(3 * mean, c:forward(x, y), 1e-12)
   end)

   it('a factor with more dimensions than the input goes over samples in order', function()
      local m = nn.CMul(1, 2, 3, 1)
      local x = torch.randn(4, 2, 3)
      local y = m:forward(x)
      assert.same({4, 2, 3}, y:size():totable())
      assert.is_true((y - torch.cmul(x, m.weight:view(1, 2, 3):expandAs(x))):abs():max() == 0)
      local b = nn.CAdd(1, 2, 3, 1)
      assert.is_true((b:forward(x) - (x + b.bias:view(1, 2, 3):expandAs(x))):abs():max() == 0)
   end)

   it('FlattenTable keeps its table while the structure stays', function()
      local m = nn.FlattenTable()
      local x = {T{1}, {T{2}, {T{3}}}}
      local y, map = m:forward(x), m.input_map
      assert.equal(y, m:forward(x))
      assert.equal(map, m.input_map)
      x[2][3] = T{4}
      local z = m:forward(x)
      assert.are_not.equal(y, z)
      assert.are_not.equal(map, m.input_map)
      assert.equal(4, #z)
   end)

   it('addSingletonDimension fills a result and refuses a wrong place', function()
      local x, res = torch.randn(2, 3), T()
      assert.equal(res, nn.utils.addSingletonDimension(res, x, 2))
      assert.same({2, 1, 3}, res:size():totable())
      assert.equal(x:storage(), res:storage())
      assert.same({1, 2, 3}, nn.utils.addSingletonDimension(x):size():totable())
      assert.has_error(function() nn.utils.addSingletonDimension(x, 4) end)
   end)

   it('a lookup table without gradWeight learns by updates', function()
      local m = nn.LookupTable(5, 2):accUpdateOnly()
      assert.is_nil(m.gradWeight)
      local before = m.weight:clone()
      m:forward(L{2, 2})
      m:backwardUpdate(L{2, 2}, torch.ones(2, 2), 0.1)
      assert.is_true((m.weight[2] - (before[2] - 0.2)):abs():max() < 1e-12)
      assert.is_true((m.weight[1] - before[1]):abs():max() == 0)
   end)

   it('flattens parameters that are listed twice', function()
      local m = nn.Linear(3, 2)
      m.weight:fill(1)
      m.bias:fill(2)
      local flat = nn.Module.flatten {m.weight, m.bias, m.weight, m.bias}
      assert.same({1, 1, 1, 1, 1, 1, 2, 2}, flat:totable())
      flat:fill(5)
      assert.equal(5, m.weight:min())
      assert.equal(5, m.bias:min())
   end)

   it('a linear layer ignores the gradient for an input that forward does not take', function()
      local m = nn.Linear(6, 4)
      m:zeroGradParameters()
      m:forward(torch.randn(5, 6))
      local g = m:backward(torch.randn(5, 2, 3), torch.randn(5, 6))
      assert.same({5, 2, 3}, g:size():totable())
      assert.equal(0, g:abs():sum() + m.gradWeight:abs():sum())
   end)

   it('packages do not depend on the default type', function()
      torch.setdefaulttensortype 'torch.FloatTensor'
      local ok, err = pcall(function()
         local image = require 'image'
         local x = torch.rand(3, 8, 8)
         for _, mode in ipairs {'bilinear', 'bicubic', 'simple'} do
            assert.equal('torch.FloatTensor', image.scale(x, 5, 13, mode):type())
         end
         assert.equal('torch.DoubleTensor', image.rotate(x:double(), 0.3, 'bilinear'):type())
         local best = optim.cmaes(function(v) return v:dot(v) end, torch.ones(3), {maxEval = 60})
         assert.equal('torch.FloatTensor', best:type())
      end)
      torch.setdefaulttensortype 'torch.DoubleTensor'
      assert.is_true(ok, err)
   end)

   it('backward goes by what is in its input now, when a module has put something else into it', function()
      local first, last = nn.Linear(3, 3), nn.Tanh()
      local state = last:forward(torch.randn(2, 3)) -- the module's output, kept by a program as its state
      first:forward(state)
      local now = last:forward(torch.randn(2, 3)):clone() -- the same tensor, other values
      local dy = torch.randn(2, 3)
      first:zeroGradParameters()
      first:backward(state, dy)
      assert.is_true((first.gradWeight - dy:t() * now):abs():max() < 1e-12)
   end)

   it('two objects of one storage are equal', function()
      local a, b = T(4), T(4)
      assert.is_true(a:storage() == a:narrow(1, 2, 2):storage())
      assert.is_false(a:storage() == b:storage())
   end)
end)
