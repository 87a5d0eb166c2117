-- Sizes that change: static first, symbolic after the first change; plans by size, captures counted.


-- Calls f compiled and eager on the same arguments and compares; returns the compiled function's counts.
local function pair(f, options)
   local compiled = torch.compile(f, options)
   return function(...)
      local want, got = {f(...)}, {compiled(...)}
      assert.equal(#want, #got)
      for i, x in ipairs(want) do
         if torch.isTensor(x) then
            assert.same(x:size():totable(), got[i]:size():totable())
            assert.is_true((x - got[i]):abs():max() <= 1e-12 * math.max(1, x:abs():max()))
         elseif type(x) == 'number' then assert.near(x, got[i], 1e-9 * math.max(1, math.abs(x)))
         else assert.same(x, got[i]) end
      end
      return torch.compiler.stats(compiled)
   end, compiled
end

describe('sizes that change', function()
   local warnings
   before_each(function()
      local compile = require 'relume.jit.compile'
      warnings, compile.warnings = compile.warnings, false
   end)
   after_each(function() require('relume.jit.compile').warnings = warnings end)

   it('are static at first and symbolic after the first change', function()
      local run = pair(function(x) return x:clone():mul(2):sum(), torch.cmul(x, x) end)
      assert.equal(1, run(torch.randn(5, 5)).compiles)
      local s = run(torch.randn(7, 5))
      assert.equal(2, s.compiles)
      for _, n in ipairs {9, 7, 11, 5, 64} do s = run(torch.randn(n, 5)) end
      assert.equal(2, s.compiles)
      assert.equal(0, s.eager)
   end)

   it('leave the other dimensions static', function()
      local run = pair(function(x) return x * 2 end)
      run(torch.randn(5, 5))
      run(torch.randn(7, 5))
      assert.equal(2, run(torch.randn(8, 5)).compiles)
      assert.equal(3, run(torch.randn(8, 6)).compiles)
      assert.equal(3, run(torch.randn(9, 7)).compiles)
   end)

   it('0 and 1 are compiled by themselves', function()
      local run = pair(function(x, y) return torch.add(x, y:expandAs(x)) end)
      run(torch.randn(5, 3), torch.randn(1, 3))
      run(torch.randn(6, 3), torch.randn(1, 3))
      assert.equal(2, run(torch.randn(7, 3), torch.randn(1, 3)).compiles)
      assert.equal(3, run(torch.randn(1, 3), torch.randn(1, 3)).compiles)
      assert.equal(3, run(torch.randn(2, 3), torch.randn(1, 3)).compiles)
   end)

   it('two equal sizes are two symbols', function()
      local run = pair(function(x, y) return x:sum() + y:sum(), x:size(1) + y:size(1) end)
      run(torch.randn(4), torch.randn(4))
      assert.equal(2, run(torch.randn(6), torch.randn(6)).compiles)
      assert.equal(2, run(torch.randn(6), torch.randn(9)).compiles)
      assert.equal(2, run(torch.randn(8), torch.randn(5)).compiles)
   end)

   it('give numbers that follow them', function()
      local run = pair(function(x)
         local n, m = x:size(1), x:nElement()
         local t = {count = n, rest = m / n, x:size(), #x}
         return n, m, n * 2 + 1, math.floor(n / 2), t.count, t.rest, t[1]:totable(), t[2]:totable(), x:size():totable()[1], x:dim(), x:stride(1)
      end)
      for _, n in ipairs {4, 6, 8, 5, 9} do run(torch.randn(n, 3)) end
      assert.equal(2, run(torch.randn(10, 3)).compiles)
   end)

   it('go into views, windows and new tensors', function()
      local run = pair(function(x)
         local n = x:size(1)
         local half = math.floor(n / 2)
         local a = x:view(n * 3)
         local b = x:narrow(1, half, n - half)
         local c = torch.zeros(n, 2):fill(3)
         local d = x:view(n, 3, 1):expand(n, 3, 4)
         return a * 2, b + 1, c, d:sum(3), torch.range(1, n), x:sub(2, -1):sum(1), x[{{1, half}, {}}] * 2, x[n] + x[1], torch.cat(x, c, 2)
      end)
      for _, n in ipairs {4, 6, 8, 5, 9} do run(torch.randn(n, 3)) end
      assert.equal(2, run(torch.randn(10, 3)).compiles)
   end)

   it('decide branches, which are guards', function()
      local f = function(x)
         if x:size(1) > 8 then return x * 2 end
         return x + 1
      end
      local run, compiled = pair(f)
      run(torch.randn(4))
      assert.equal(2, run(torch.randn(6)).compiles)
      assert.equal(3, run(torch.randn(10)).compiles)
      local s
      for _, n in ipairs {7, 12, 5, 20, 8, 9} do s = run(torch.randn(n)) end
      assert.equal(3, s.compiles)
      assert.is_truthy(tostring(torch.explain(compiled, torch.randn(5))):find('x:size(1)', 1, true))
   end)

   it('that bound a loop are compiled one by one', function()
      local run = pair(function(x)
         local s = 0
         for i = 1, x:size(1) do s = s + x[i] * i end
         return s
      end)
      run(torch.randn(3, 2))
      run(torch.randn(4, 2))
      assert.equal(3, run(torch.randn(5, 2)).compiles)
      assert.equal(3, run(torch.randn(4, 2)).compiles)
   end)

   it('are never symbolic with dynamic = false, at once with dynamic = true', function()
      local f = function(x) return x * 2, x:size(1) end
      local run = pair(f, {dynamic = false})
      for n = 3, 6 do assert.equal(n - 2, run(torch.randn(n)).compiles) end
      run = pair(f, {dynamic = true})
      for n = 3, 6 do assert.equal(1, run(torch.randn(n)).compiles) end
   end)
end)

describe('markDynamic', function()
   it('makes a size symbolic at the first call, within its range', function()
      local run = pair(function(x) return x * 2, x:size(1) end)
      assert.equal(1, run(torch.markDynamic(torch.randn(4, 2), 1, 2, 50)).compiles)
      assert.equal(1, run(torch.randn(9, 2)).compiles)
      assert.equal(1, run(torch.randn(50, 2)).compiles)
      assert.equal(2, run(torch.randn(51, 2)).compiles)
      assert.equal(2, run(torch.randn(3, 2)).compiles)
   end)

   it('looks at what it is given', function()
      local x = torch.randn(4, 2)
      assert.equal(x, torch.markDynamic(x, 2))
      assert.has_error(function() torch.markDynamic(3, 1) end, '[markDynamic] tensor; got number, need a tensor')
      assert.has_error(function() torch.markDynamic(x, 3) end, '[markDynamic] dimension; got 3, need 1 to 2')
      assert.has_error(function() torch.markDynamic(x, 1, 8, 5) end, '[markDynamic] range; got 8 to 5, need 2 or more')
      assert.has_error(function() torch.markDynamic(x, 1, 8) end, '[markDynamic] size of dimension 1; got 4, need 8 to any')
   end)

   it('raises an error when the function works for one size only', function()
      local f = torch.compile(function(x)
         for _ = 1, x:size(1) do x = x + 1 end
         return x
      end)
      assert.has_error(function() f(torch.markDynamic(torch.randn(4), 1)) end)
      local g = torch.compile(function(x)
         local n = x:size(1)
         if n > 5 then return x * 2 elseif n < 5 then return x * 3 end
         return x * 4
      end)
      local ok, message = pcall(g, torch.markDynamic(torch.randn(5), 1))
      assert.is_false(ok)
      assert.is_truthy(message:find('[markDynamic] dimension 1 of x', 1, true))
      assert.is_truthy(message:find('works for size 5 only', 1, true))
   end)
end)

-- Whole training steps -------------------------------------------------------------------------------------------------------------

local networks = {
   mlp = function()
      return nn.Sequential():add(nn.Linear(12, 16)):add(nn.ReLU()):add(nn.Dropout(0.3)):add(nn.Linear(16, 4)):add(nn.LogSoftMax())
   end,
   conv = function()
      return nn.Sequential():add(nn.View(-1, 1, 3, 4)):add(nn.SpatialConvolution(1, 3, 3, 3, 1, 1, 1, 1)):add(nn.SpatialBatchNormalization(3))
         :add(nn.ReLU()):add(nn.SpatialMaxPooling(2, 2)):add(nn.View(6)):add(nn.Linear(6, 4)):add(nn.LogSoftMax())
   end,
   lstm = function()
      local lstm = nn.SeqLSTM(4, 5)
      lstm.batchfirst = true
      return nn.Sequential():add(nn.View(-1, 3, 4)):add(lstm):add(nn.Select(2, 3)):add(nn.Linear(5, 4)):add(nn.LogSoftMax())
   end,
}

local function training(kind, method, config)
   torch.manualSeed(3)
   local net, criterion = networks[kind](), nn.ClassNLLCriterion()
   local params, grads = net:getParameters()
   local state = {}
   for k, v in pairs(config) do state[k] = v end
   return {net = net, params = params, step = function(x, y)
      local function feval()
         grads:zero()
         local out = net:forward(x)
         local loss = criterion:forward(out, y)
         net:backward(x, criterion:backward(out, y))
         return loss, grads
      end
      local x1, losses = optim[method](feval, params, state)
      return x1, losses[1]
   end}
end

local SIZES = {20, 30, 25, 7, 64, 33, 20, 48}

describe('the batch size of a training step', function()
   for _, case in ipairs {
      {'mlp', 'sgd', {learningRate = 0.05, momentum = 0.9, dampening = 0}}, {'mlp', 'adam', {learningRate = 1e-3}},
      {'conv', 'sgd', {learningRate = 0.05}}, {'lstm', 'rmsprop', {learningRate = 1e-3}},
   } do
      it(('may change: %s, %s'):format(case[1], case[2]), function()
         local a, b = training(unpack(case)), training(unpack(case))
         local step = torch.compile(b.step)
         local function run(n)
            torch.manualSeed(n)
            local x, y = torch.randn(n, 12), torch.rand(n):mul(4):floor():add(1)
            torch.manualSeed(n)
            local _, want = a.step(x, y)
            torch.manualSeed(n) -- dropout draws the same masks
            local _, got = step(x, y)
            assert.near(want, got, 1e-9 * math.max(1, math.abs(want)))
            assert.is_true((a.params - b.params):abs():max() < 1e-9)
            assert.same(a.net.output:size():totable(), b.net.output:size():totable())
            assert.is_true((a.net.output - b.net.output):abs():max() < 1e-9)
            assert.is_true((a.net.gradInput - b.net.gradInput):abs():max() < 1e-9)
            return torch.compiler.stats(step)
         end
         run(20)
         local before = run(20) -- the state of the optimiser is there now
         for _, n in ipairs(SIZES) do run(n) end
         local after = run(5)
         assert.equal(before.compiles + 1, after.compiles)
         -- a step with dropout leaves what a backward outside needs, and such entries are not probed: one text more, once
         assert.is_true(after.texts - before.texts <= 2, after.texts - before.texts .. ' texts')
         assert.equal(0, after.eager)
         assert.equal(7, after.plans)
      end)
   end
end)
