-- Modules over tables: values, gradients, nested inputs, text.
local check = require 'support.module_check'

local function sizes(t) return t:size():totable() end

describe('table modules', function()
   before_each(function() torch.manualSeed(31) end)

   local function three() return {torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)} end
   local function positive() return {torch.rand(3, 4):add(0.5), torch.rand(3, 4):add(0.5)} end

   it('nn.CAddTable', function()
      local x = three()
      assert.near(check.module(nn.CAddTable(), x), x[1] + x[2] + x[3], 1e-12)
      local m, g = nn.CAddTable(), torch.randn(3, 4)
      m:forward(x)
      local dx = m:backward(x, g)
      dx[1]:zero()
      assert.near(dx[2], g, 0)
      m:forward {x[1]}
      assert.equal(1, #m:backward({x[1]}, g))
   end)

   it('nn.CMulTable, nn.CSubTable, nn.CDivTable', function()
      local x, p = three(), positive()
      assert.near(check.module(nn.CMulTable(), x), torch.cmul(torch.cmul(x[1], x[2]), x[3]), 1e-12)
      assert.near(check.module(nn.CSubTable(), p), p[1] - p[2], 1e-12)
      assert.near(check.module(nn.CDivTable(), p), torch.cdiv(p[1], p[2]), 1e-12)
   end)

   it('nn.CMaxTable and nn.CMinTable', function()
      local x = three()
      local y, z = check.module(nn.CMaxTable(), x), check.module(nn.CMinTable(), x)
      for i = 1, 3 do
         for k = 1, 4 do
            assert.equal(math.max(x[1][i][k], x[2][i][k], x[3][i][k]), y[i][k])
            assert.equal(math.min(x[1][i][k], x[2][i][k], x[3][i][k]), z[i][k])
         end
      end
   end)

   it('nn.JoinTable', function()
      local x = {torch.randn(2, 3), torch.randn(2, 4)}
      local y = check.module(nn.JoinTable(2), x)
      assert.same({2, 7}, sizes(y))
      assert.near(y:narrow(2, 4, 4):clone(), x[2], 0)
      assert.same({2, 7}, sizes(nn.JoinTable(1, 1):forward(x)))
      assert.same({2, 7}, sizes(nn.JoinTable(-1):forward(x)))
      assert.same({7}, sizes(check.module(nn.JoinTable(1), {torch.randn(3), torch.randn(4)})))
   end)

   it('nn.SplitTable', function()
      local x = torch.randn(3, 4)
      local y = check.module(nn.SplitTable(1), x)
      assert.equal(3, #y)
      assert.near(y[2], x[2]:clone(), 0)
      assert.equal(4, #nn.SplitTable(1, 1):forward(x))
      assert.equal(4, #nn.SplitTable(-1):forward(x))
   end)

   it('nn.SelectTable', function()
      local x = {torch.randn(2), {torch.randn(3), torch.randn(4)}, torch.randn(5)}
      local m = nn.SelectTable(2)
      assert.is_true(rawequal(x[2], m:forward(x)))
      local g = {torch.randn(3), torch.randn(4)}
      local dx = m:backward(x, g)
      assert.near(dx[1], torch.zeros(2), 0)
      assert.near(dx[3], torch.zeros(5), 0)
      assert.is_true(rawequal(g, dx[2]))
      assert.is_true(rawequal(x[3], nn.SelectTable(-1):forward(x)))
      assert.equal(7, nn.SelectTable('a'):forward {a = 7})
      assert.has_error(function() m:forward {x[1]} end)
      local other = {torch.randn(2), torch.randn(3), torch.randn(4)}
      local n, g2 = nn.SelectTable(-1), torch.randn(4)
      n:forward(other)
      n:backward(other, g2)
      local shorter = {torch.randn(2), torch.randn(3)}
      n:forward(shorter)
      local kept = g2:clone()
      n:backward(shorter, torch.randn(3))
      assert.near(g2, kept, 0)
   end)

   it('nn.NarrowTable', function()
      local x = {torch.randn(2), torch.randn(3), torch.randn(4)}
      local m = nn.NarrowTable(2, 2)
      assert.same({x[2], x[3]}, m:forward(x))
      local dx = m:backward(x, {x[2], x[3]})
      assert.near(dx[1], torch.zeros(2), 0)
      assert.equal(2, #nn.NarrowTable(1, -2):forward(x))
      assert.equal(1, #nn.NarrowTable(3):forward(x))
   end)

   it('nn.FlattenTable', function()
      local a, b, c = torch.randn(2), torch.randn(3), torch.randn(4)
      local m = nn.FlattenTable()
      assert.same({a, b, c}, m:forward {a, {b, {c}}})
      local dx = m:backward({a, {b, {c}}}, {a, b, c})
      assert.is_true(rawequal(c, dx[2][2][1]) and rawequal(a, dx[1]))
   end)

   it('nn.MM', function()
      for _, case in ipairs {{false, false, {2, 3}, {3, 4}}, {true, false, {3, 2}, {3, 4}}, {false, true, {2, 3}, {4, 3}}} do
         local ta, tb, sa, sb = unpack(case)
         local a, b = torch.randn(unpack(sa)), torch.randn(unpack(sb))
         local y = check.module(nn.MM(ta, tb), {a, b})
         assert.near(y, (ta and a:t() or a) * (tb and b:t() or b), 1e-12)
         local batch = {torch.randn(5, unpack(sa)), torch.randn(5, unpack(sb))}
         local z = check.module(nn.MM(ta, tb), batch)
         assert.near(z[3], nn.MM(ta, tb):forward {batch[1][3], batch[2][3]}, 1e-12)
      end
   end)

   it('nn.MV and nn.DotProduct', function()
      local m, v = torch.randn(3, 4), torch.randn(4)
      assert.near(check.module(nn.MV(), {m, v}), m * v, 1e-12)
      assert.near(nn.MV(true):forward {m:t():clone(), v}, m * v, 1e-12)
      assert.same({5, 3}, sizes(check.module(nn.MV(), {torch.randn(5, 3, 4), torch.randn(5, 4)})))
      local a, b = torch.randn(3, 4), torch.randn(3, 4)
      assert.near(check.module(nn.DotProduct(), {a, b}), torch.cmul(a, b):sum(2):view(3), 1e-12)
      assert.near(nn.DotProduct():forward {a[1], b[1]}, torch.Tensor {torch.dot(a[1], b[1])}, 1e-12)
   end)
end)

describe('table containers', function()
   before_each(function() torch.manualSeed(32) end)

   it('nn.ConcatTable adds the gradients', function()
      local m = nn.ConcatTable():add(nn.Linear(4, 3)):add(nn.Tanh()):add(nn.Identity())
      local x = torch.randn(2, 4)
      local y = check.module(m, x)
      assert.near(y[2], torch.tanh(x), 1e-12)
      check.module(nn.ConcatTable():add(nn.Identity()):add(nn.Identity()), {torch.randn(2), torch.randn(3)})
   end)

   it('nn.ParallelTable', function()
      local m = nn.ParallelTable():add(nn.Linear(4, 3)):add(nn.Tanh())
      check.module(m, {torch.randn(2, 4), torch.randn(5)})
      local nested = nn.ParallelTable():add(nn.CAddTable()):add(nn.Identity())
      check.module(nested, {{torch.randn(2), torch.randn(2)}, torch.randn(3)})
   end)

   it('nn.MapTable shares its module', function()
      local m = nn.MapTable(nn.Linear(4, 3))
      local x = {torch.randn(2, 4), torch.randn(2, 4), torch.randn(2, 4)}
      local y = m:forward(x)
      assert.near(y[3], m.module:forward(x[3]), 1e-12)
      m:forward(x)
      m:zeroGradParameters()
      local g = {torch.randn(2, 3), torch.randn(2, 3), torch.randn(2, 3)}
      m:backward(x, g)
      local want = torch.zeros(3, 4)
      for i = 1, 3 do want:add(g[i]:t() * x[i]) end
      assert.near(m.module.gradWeight, want, 1e-12)
      m:clearState()
      assert.equal(1, #m.modules)
   end)

   it('nn.Concat and nn.DepthConcat', function()
      local x = torch.randn(2, 4)
      local m = nn.Concat(2):add(nn.Linear(4, 3)):add(nn.Linear(4, 2))
      local y = check.module(m, x)
      assert.near(y:narrow(2, 4, 2):clone(), m:get(2):forward(x), 1e-12)
      local d = nn.DepthConcat(1):add(nn.SpatialConvolution(2, 3, 1, 1)):add(nn.SpatialConvolution(2, 2, 3, 3))
      local img = torch.randn(2, 6, 5)
      local z = check.module(d, img)
      assert.same({5, 6, 5}, sizes(z))
      assert.near(z:narrow(1, 4, 2):narrow(2, 2, 4):narrow(3, 2, 3):clone(), d:get(2):forward(img), 1e-12)
      assert.equal(0, z:narrow(1, 4, 2):select(2, 1):abs():sum())
   end)

   it('nn.Parallel', function()
      local m = nn.Parallel(2, 2):add(nn.Linear(4, 3)):add(nn.Linear(4, 2))
      local x = torch.randn(5, 2, 4)
      local y = check.module(m, x, {noTape = false})
      assert.same({5, 5}, sizes(y))
      assert.near(y:narrow(2, 1, 3):clone(), m:get(1):forward(x:select(2, 1)), 1e-12)
   end)

   it('print as the original does', function()
      local m = nn.Sequential():add(nn.ConcatTable():add(nn.Tanh()):add(nn.Linear(2, 3))):add(nn.CAddTable())
      assert.equal(table.concat({
         'nn.Sequential {',
         '  [input -> (1) -> (2) -> output]',
         '  (1): nn.ConcatTable {',
         '    input',
         '      |`-> (1): nn.Tanh',
         '       `-> (2): nn.Linear(2 -> 3)',
         '       ... -> output',
         '  }',
         '  (2): nn.CAddTable',
         '}'}, '\n'), tostring(m))
   end)
end)
