-- torch.compile on tensors: same results, state, gradients and errors as eager; few compiles.

local compile = require 'relume.jit.compile'

local function stats(f) return torch.compiler.stats(f) end
local function near(a, b, tol) return (a - b):abs():max() <= (tol or 1e-5) end

describe('torch.compile', function()
   before_each(function()
      compile.warnings = false
      torch.setdefaulttensortype 'torch.FloatTensor'
      torch.manualSeed(1)
   end)
   after_each(function()
      compile.warnings = true
      torch.setdefaulttensortype 'torch.DoubleTensor'
   end)

   it('runs ops, in-place changes and numbers as eager does', function()
      local function f(x, y)
         local z = x + y * 2
         z:add(1):tanh()
         return z, z:sum(), z:size(1)
      end
      local c = torch.compile(f)
      local x, y = torch.rand(3, 4), torch.rand(3, 4)
      for _ = 1, 2 do
         local a, s, n = f(x, y)
         local b, t, m = c(x, y)
         assert.is_true(near(a, b))
         assert.near(s, t, 1e-4)
         assert.equal('number', type(t))
         assert.equal(n, m)
      end
      assert.equal(1, stats(c).compiles)
      assert.equal(0, stats(c).eager)
   end)

   it('changes its inputs in place and returns views of them', function()
      local c = torch.compile(function(x) x:mul(2) return x[1], x:t(), x end)
      local x = torch.ones(2, 3)
      local row, t, same = c(x)
      assert.equal(12, x:sum())
      assert.is_true(rawequal(same, x))
      x:fill(5)
      assert.equal(15, row:sum())
      assert.equal(5, t[3][2])
   end)

   it('sees when two arguments are one', function()
      local c = torch.compile(function(x, y) x:mul(2) return x + y end)
      local a, b = torch.ones(2), torch.ones(2)
      assert.equal(6, c(a, b):sum())
      assert.equal(8, c(b, b):sum())
      local s = torch.ones(4)
      assert.equal(11, c(s:narrow(1, 1, 3), s:narrow(1, 2, 3)):sum())
   end)

   it('makes a number that changes an input after its first change', function()
      local opt = {lr = 0.1}
      local c = torch.compile(function(x, s) return x * s + opt.lr end)
      local x = torch.ones(2)
      for i = 1, 10 do
         opt.lr = i / 10
         assert.near(i * 1.5 + i / 10, c(x, i * 1.5)[1], 1e-5)
      end
      assert.is_true(stats(c).compiles <= 2)
   end)

   it('keeps counters that no op uses out of the guards', function()
      local m = {count = 0}
      local c = torch.compile(function(x) m.count = m.count + 1 return x + 1 end)
      for i = 1, 10 do
         c(torch.ones(1))
         assert.equal(i, m.count)
      end
      assert.equal(1, stats(c).compiles)
   end)

   it('recompiles when a field that it read changes', function()
      local m = {act = 'tanh', on = true}
      local c = torch.compile(function(x) if m.on then return x[m.act](x:clone()) end return x * 0 end)
      local x = torch.ones(1)
      assert.near(math.tanh(1), c(x)[1], 1e-6)
      m.act = 'exp'
      assert.near(math.exp(1), c(x)[1], 1e-5)
      m.on = false
      assert.equal(0, c(x)[1])
      m.on = true
      assert.near(math.exp(1), c(x)[1], 1e-5)
      assert.equal(3, stats(c).compiles)
   end)

   it('accumulates gradients of leaves', function()
      local function f(x, w)
         local loss = torch.cmul(x, w):pow(2):sum()
         loss:backward()
         return loss:detach()
      end
      local function leaf() return torch.FloatTensor {1, 2, 3}:requiresGrad(true) end
      local x = torch.FloatTensor {4, 5, 6}
      local c, w, v = torch.compile(f), leaf(), leaf()
      for _ = 1, 3 do
         f(x, w)
         c(x, v)
         assert.is_true(near(w:grad(), v:grad(), 1e-3))
      end
      assert.equal(0, stats(c).eager)
   end)

   it('captures torch.grad, double backward and functions with their own gradient', function()
      local Exp = torch.autograd.Function.extend 'Exp'
      function Exp.forward(ctx, x) ctx.y = torch.exp(x) return ctx.y end
      function Exp.backward(ctx, dy) return torch.cmul(dy, ctx.y) end
      local programs = {
         function(w, x) local g, l = torch.grad(function(p) return torch.cmul(p.w, x):pow(2):sum() end)({w = w:detach()}) return g.w, l end,
         function(w, x)
            local y = torch.cmul(w, x):pow(3):sum()
            torch.autograd.grad({y}, {w}, nil, {createGraph = true})[1]:pow(2):sum():backward()
            return w:grad():clone()
         end,
         function(w, x) local l = Exp.apply(torch.cmul(w, x)):sum() l:backward() return w:grad():clone(), l:detach() end,
      }
      local x = torch.FloatTensor {1, 2, 3}
      for _, f in ipairs(programs) do
         local c = torch.compile(f)
         for _ = 1, 2 do
            local a, b = torch.ones(3):requiresGrad(true), torch.ones(3):requiresGrad(true)
            assert.is_true(near(f(a, x), c(b, x), 1e-3))
         end
         assert.equal(0, stats(c).eager)
      end
   end)

   it('restores the gradient mode and follows noGrad', function()
      local w = torch.ones(2):requiresGrad(true)
      local c = torch.compile(function(x) return torch.noGrad(function() return torch.cmul(w, x) end) end)
      assert.is_false(c(torch.ones(2)):requiresGrad())
      assert.is_false(c(torch.ones(2)):requiresGrad())
      assert.equal(0, stats(c).eager)
      assert.is_true((w * 2):requiresGrad())
   end)

   it('builds tables and closures that leave', function()
      local keep = {}
      local c = torch.compile(function(x, name)
         keep[name] = {x = x, y = x * 2, list = {1, x:sum()}}
         return function() return x:sum() + #name end
      end)
      local x = torch.ones(3)
      for _, name in ipairs {'a', 'bb'} do
         local g = c(x, name)
         assert.equal(3 + #name, g())
         assert.is_true(rawequal(x, keep[name].x))
         assert.equal(6, keep[name].y:sum())
         assert.equal(3, keep[name].list[2])
      end
   end)

   it('takes tables and closures that are new at each call', function()
      local c = torch.compile(function(o, f) return f(o.x) * o.s end)
      for i = 1, 6 do
         local k = i
         assert.equal((1 + k) * 2, c({x = torch.ones(1), s = 2}, function(t) return t + k end)[1])
      end
      assert.is_true(stats(c).compiles <= 3, tostring(stats(c).compiles))
   end)

   it('raises what the program raises and leaves no trace', function()
      local state = {n = 0}
      local function f(a, b) state.n = state.n + 1 return a + b end
      local c = torch.compile(f)
      local ok = pcall(c, torch.ones(2), torch.ones(3))
      assert.is_false(ok)
      assert.equal(1, state.n)
      assert.equal(2, c(torch.ones(1), torch.ones(1))[1])
      assert.equal(2, state.n)
   end)

   it('draws the same random numbers', function()
      local function f(x) return x:clone():bernoulli(0.5) + torch.rand(4) end
      local c, x = torch.compile(f), torch.zeros(4)
      torch.manualSeed(7)
      local a, b = f(x), f(x)
      torch.manualSeed(7)
      assert.is_true(near(a, c(x), 0))
      assert.is_true(near(b, c(x), 0))
   end)

   it('resizes buffers as old programs do', function()
      local buf = torch.Tensor()
      local c = torch.compile(function(x) buf:resizeAs(x):copy(x):mul(3) return buf end)
      for n = 1, 3 do
         for _ = 1, 3 do
            assert.equal(3 * n, c(torch.ones(n)):sum())
            assert.equal(n, buf:nElement())
         end
      end
   end)
end)


describe('what is not captured', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   it('runs in the real VM and is reported with its line', function()
      local seen = {}
      local function f(x)
         if x:sum() > 1 then seen[#seen + 1] = 'big' return x * 2 end
         return x
      end
      local c = torch.compile(f)
      assert.equal(4, c(torch.ones(2))[1] * 2)
      assert.equal(1, #seen)
      local r = torch.explain(c, torch.ones(2))
      assert.equal(1, r.breaks)
      assert.equal(2, r.graphs)
      assert.equal('data-dependent', r.list[1].id)
      assert.truthy(r.list[1].where:find 'jit_compile_spec.lua:%d+')
      assert.equal(1, #seen)
   end)

   it('raises under fullgraph', function()
      local c = torch.compile(function(x) print(x) return x end, {fullgraph = true})
      local ok, e = pcall(c, torch.ones(1))
      assert.is_false(ok)
      assert.truthy(e:find('side-effect', 1, true))
   end)

   it('stops at functions that are disabled', function()
      local g = torch.compiler.disable(function(x) return x + 1 end)
      local c = torch.compile(function(x) return g(x) end)
      assert.equal(2, c(torch.ones(1))[1])
      assert.equal('disabled', torch.explain(c, torch.ones(1)).list[1].id)
   end)

   it('is loud about the limit', function()
      local c = torch.compile(function(x, name) return x + #name end)
      local reasons = 0
      local d = torch.compile(function(x, name) return x + #name end, {onRecompile = function() reasons = reasons + 1 end})
      for i = 1, 12 do
         assert.equal(1 + i, c(torch.ones(1), ('x'):rep(i))[1])
         d(torch.ones(1), ('x'):rep(i))
      end
      assert.equal(8, stats(c).compiles)
      assert.equal(4, stats(c).limit)
      assert.equal(7, reasons)
   end)

   it('reacts to a recompile as told', function()
      local function f(x) return x * 2 end
      local once = torch.compile(f, {onRecompile = 'eager'})
      for n = 1, 3 do assert.equal(n, once(torch.ones(n)):size(1)) end
      assert.equal(1, stats(once).compiles)
      assert.equal(2, stats(once).eager)
      local strict = torch.compile(f, {onRecompile = 'error'})
      strict(torch.ones(1))
      local ok, e = pcall(strict, torch.ones(2))
      assert.is_false(ok)
      assert.truthy(e:find 'types, sizes, strides or storages of the tensors')
      local warned = torch.compile(f, {onRecompile = 'warn'})
      for n = 1, 3 do assert.equal(2, warned(torch.ones(n))[n]) end
      assert.equal(3, stats(warned).compiles)
      assert.is_false(pcall(torch.compile, f, {onRecompile = 'often'}))
   end)

   it('answers isCompiling, reset and unknown options', function()
      local c = torch.compile(function() return torch.compiler.isCompiling() end)
      assert.is_true(c())
      assert.is_false(torch.compiler.isCompiling())
      torch.compiler.reset(c)
      assert.equal(0, stats(c).compiles)
      assert.is_false(pcall(torch.compile, print))
      assert.is_false(pcall(torch.compile, function() end, {fast = true}))
      assert.is_false(pcall(torch.compile, {}))
   end)

   it('gives the graph to a backend', function()
      local got
      local c = torch.compile(function(x, y) return torch.cmul(x, y) + 1 end, {backend = function(graph)
         got = graph
         return function(...) return graph:run({...}, {}) end
      end})
      assert.equal(7, c(torch.ones(1) * 2, torch.ones(1) * 3)[1])
      assert.truthy(got:print():find 'mul')
   end)

   it('pushes no traces of the program out while it captures', function()
      local started, info, match = {}, debug.getinfo, string.match
      local evaluator = {eval = true, context = true, ops = true, call = true, value = true, tensor = true, emit = true, bytecode = true}
      local function seen(what, _, f) -- sees no globals of a spec
         local source = what == 'start' and info(f, 'S').source
         local module = source and match(source, 'relume/jit/(%a+)%.lua')
         if module and evaluator[module] then started[#started + 1] = module end
      end
      jit.attach(seen, 'trace')
      for k = 1, 60 do
         local c = torch.compile(loadstring(('local x, t = ... for i = 1, 20 do t[i] = i + %d end return x + t[3]'):format(k)), {backend = 'eager'})
         c(torch.ones(2), {})
      end
      jit.attach(seen)
      assert.same({}, started)
   end)
end)
