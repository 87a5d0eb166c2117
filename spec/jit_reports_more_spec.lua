-- Public reports about another compiler of closures, by number, part two; part one and the list of what has no meaning in Lua are in
-- jit_reports_spec.lua.

local compile = require 'relume.jit.compile'
local C = require 'relume.core'
local function stats(c) return torch.compiler.stats(c) end
local function list(x) return x:contiguous():view(-1):totable() end

-- f run eagerly and compiled on what make() gives, compiled more than once: results agree.
local function agree(f, make, tolerance)
   local want = {f(make())}
   local c = torch.compile(f)
   for _ = 1, 3 do assert.near({c(make())}, want, tolerance or 0) end
   return c
end

-- Collects, then says whether the weak table's key is gone.
local function collected(weak)
   for _ = 1, 4 do collectgarbage() end
   return next(weak) == nil
end

describe('report', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   it('8: equal sizes of two arguments are no promise for the next call', function()
      local function f(x, y) return x:sum() + y:sum() end
      local c = torch.compile(f)
      for i, n in ipairs {3, 5, 5, 7, 6} do
         local x, y = torch.ones(3 + i % 2), torch.ones(n)
         assert.equal(x:nElement() + n, c(x, y))
      end
      assert.is_true(stats(c).compiles <= 8)
   end)

   it('11: a method that is replaced on a child after compilation is called', function()
      local net = nn.Sequential():add(nn.Linear(2, 2)):add(nn.Tanh())
      local c = torch.compile(function(x) return net:forward(x):clone() end)
      local x = torch.ones(1, 2)
      local before = list(c(x))
      local child, seen = net:get(1), 0
      function child:updateOutput(input)
         seen = seen + 1
         nn.Linear.updateOutput(self, input)
         self.output:mul(0)
         return self.output
      end
      assert.not_same({0, 0}, before)
      assert.same({0, 0}, list(c(x)))
      assert.equal(1, seen)
      child.updateOutput = nil
      assert.same(before, list(c(x)))
      assert.equal(1, seen)
   end)

   it('13: an argument that is a strided view of a tensor with history changes its base there alone', function()
      local function run(f)
         local leaf = torch.zeros(6):requiresGrad(true)
         local base = leaf * 1
         f(base:view(3, 2):select(2, 1))
         base:sum():backward()
         return list(base:detach()), list(leaf:grad())
      end
      local function f(a) a:add(1) end
      local base, grad = run(torch.compile(f))
      assert.same({1, 0, 1, 0, 1, 0}, base)
      assert.same({1, 1, 1, 1, 1, 1}, grad)
      local plain = torch.zeros(6)
      torch.compile(f)(plain:view(3, 2):select(2, 1))
      assert.same({1, 0, 1, 0, 1, 0}, list(plain))
   end)

   it('14: a result whose shape was changed in place may be changed by the caller', function()
      local function f(x)
         local out = x * 2
         out:resize(1, 3)
         return out:transpose(1, 2)
      end
      local x = torch.ones(3):requiresGrad(true)
      local y = torch.compile(function(v)
         local out = v * 2
         return out:view(1, 3)
      end)(x)
      y:mul(3)
      y:sum():backward()
      assert.same({6, 6, 6}, list(x:grad()))
      local out = torch.compile(f)(torch.ones(3))
      out:mul(5)
      assert.same({10, 10, 10}, list(out))
      assert.same({3, 1}, out:size():totable())
   end)

   it('16: strides of a changed value are kept', function()
      agree(function()
         local x = torch.range(0, 5):unfold(1, 1, 2):select(2, 1)
         x:add(1)
         return torch.DoubleTensor(x:storage(), 1, 3, 2)
      end, function() end)
      agree(function(base)
         local x = base:unfold(1, 1, 2):select(2, 1)
         x:add(1)
         local y = x.new()
         y:set(x:storage(), 1, torch.LongStorage {3}, torch.LongStorage {2})
         return y, x:stride(1), base
      end, function() return torch.range(0, 5) end)
   end)

   it('17: a copy of what an unknown function changes stays a copy', function()
      local reverse = torch.compiler.disable(function(from, to)
         for i = 1, from:size(1) do to[i] = from[from:size(1) + 1 - i] end
      end)
      agree(function(x)
         local y = x:clone()
         reverse(y, x)
         return x + 0, y
      end, function() return torch.range(1, 4) end)
   end)

   it('18: ops behind an unknown function read what it wrote', function()
      local overwrite = torch.compiler.disable(function(t) t:fill(3) end)
      local c = agree(function(n)
         local t = torch.Tensor(n):fill(1)
         overwrite(t)
         return torch.pow(t, 2):sum(), t
      end, function() return 4 end)
      assert.equal(36, (c(4)))
   end)

   it('23: sums over trailing dimensions that several loops share', function()
      agree(function(x, scale)
         local e = torch.exp(-torch.cmul(x, scale:view(5, 1, 1, 1):expandAs(x)))
         return torch.cdiv(e, e:sum(4):sum(3):sum(2):expandAs(e))
      end, function()
         torch.manualSeed(1)
         return torch.rand(5, 1, 32, 32), torch.rand(5)
      end, 1e-12)
   end)

   it('25: duplicates in an index are read before they are written', function()
      local function f(x, y)
         local at = x + 2
         local picked = y:index(1, at)
         y:indexCopy(1, at, y:index(1, at) + picked)
         y:indexAdd(1, at, torch.ones(at:nElement()))
         return y
      end
      agree(f, function() return torch.LongTensor {1, 2, 1, 3, 3}, torch.range(1, 6) end)
   end)

   it('26: no fusion across a change that the next op depends on', function()
      agree(function(at, src)
         local z = torch.zeros(4)
         z:indexAdd(1, at, src * 2)
         local half = z / 2
         z:indexAdd(1, at, src)
         return z, half
      end, function() return torch.LongTensor {1, 2, 2, 4}, torch.range(1, 4) end)
   end)

   it('27: small integers wrap, eagerly and compiled', function()
      local function f(x, y) return torch.cmul(x, y) + x, torch.cmul(x, y):add(100) end
      agree(f, function() return torch.CharTensor {50, 100, -128, 127}, torch.CharTensor {2, 3, 127, 127} end)
      local x = torch.CharTensor {50}
      assert.equal(-106, (f(x, torch.CharTensor {2}))[1])
      agree(f, function() return torch.ShortTensor {30000, -32768}, torch.ShortTensor {3, -1} end)
      agree(function(b) return b * 3, b - 7 end, function() return torch.ByteTensor {100, 3, 255} end)
   end)

   it('28, 29: integer division by zero is one thing, an error or a value, in both', function()
      for _, kind in ipairs {'LongTensor', 'IntTensor', 'ShortTensor', 'CharTensor', 'ByteTensor'} do
         for _, op in ipairs {'cdiv', 'cremainder', 'cfmod', 'cmod'} do
            local function f(x, y) return x[op](x:clone(), y) end
            local x, y = torch[kind] {0, 7, 5}, torch[kind] {0, 0, 2}
            if x[op] then
               local ok, want = pcall(f, x, y)
               local c = torch.compile(f)
               for _ = 1, 2 do
                  local okC, got = pcall(c, x, y)
                  assert.equal(ok, okC, kind .. ' ' .. op)
                  if ok then assert.near(got, want, 0)
                  else assert.equal(tostring(want):gsub('^.-:%d+: ', ''), (tostring(got):gsub('^.-:%d+: ', ''))) end
               end
            end
         end
      end
      local function byNumber(x) return x / 0 end
      local ok, want = pcall(byNumber, torch.LongTensor {1, 0, -1})
      local okC, got = pcall(torch.compile(byNumber), torch.LongTensor {1, 0, -1})
      assert.equal(ok, okC)
      if ok then assert.near(got, want, 0) end
   end)

   it('30: half types are rounded where eager stores when it is asked for', function()
      for _, kind in ipairs {'HalfTensor', 'BFloat16Tensor'} do
         local function f(x)
            local y = x / math.sqrt(7)
            local m = y:max(2)
            return y:eq(m:expandAs(y)):double():sum(2)
         end
         torch.manualSeed(3)
         local x = torch.randn(6, 50):type('torch.' .. kind)
         local want, got = f(x), torch.compile(f, {strict = true})(x)
         assert.near(got, want, 0)
         assert.is_true(got:min() >= 1)
         assert.is_true(torch.compile(f)(x):min() >= 1, 'no row is without its maximum: ' .. kind)
      end
   end)

   it('31: a cast that the program writes rounds', function()
      for _, kind in ipairs {'HalfTensor', 'BFloat16Tensor'} do
         agree(function(a, b)
            local y = (a * b):type('torch.' .. kind):type 'torch.FloatTensor'
            return y, torch.cmul(y, torch.sigmoid(y)), (a + 1 / 3):type('torch.' .. kind):type 'torch.FloatTensor' - 1
         end, function()
            torch.manualSeed(2)
            return torch.randn(4, 6):float(), torch.randn(6, 5):float()
         end, 1e-6)
      end
      agree(function(x) return (x * 3):long():double(), (x * 100):char():double() end, function() return torch.Tensor {0.9, -1.4, 1.3} end)
   end)

   it('32: random ops keep the order of the program', function()
      agree(function(x)
         local a = torch.cmul(x, torch.Tensor(8):bernoulli(0.5))
         local big = torch.cmul(torch.rand(64, 8), x:view(1, 8):expand(64, 8)):sum(1)
         local b = torch.cmul(x, torch.Tensor(8):bernoulli(0.5))
         return b, a, big, torch.rand(1)
      end, function()
         torch.manualSeed(5)
         return torch.ones(8)
      end, 1e-12)
   end)

   it('33: gradient of gradient through a compiled function', function()
      local function f(x) return torch.pow(x, 5) end
      local function twice(g)
         local x = torch.Tensor {2, 3}:requiresGrad(true)
         local d = torch.autograd.grad({g(x):sum()}, {x}, nil, {createGraph = true})[1]
         local dd = torch.autograd.grad({d:sum()}, {x})[1]
         return list(d:detach()), list(dd)
      end
      local d, dd = twice(torch.compile(f))
      assert.same({80, 405}, d)
      assert.same({160, 540}, dd)
   end)

   it('34: the gradient of a value inside, asked for inside', function()
      local function f(x)
         local y = x * 2
         local z = torch.pow(y, 2):sum()
         local g = torch.autograd.grad({z}, {y}, nil, {retain = true})[1]
         z:backward()
         return g, x:grad()
      end
      local function make() return torch.Tensor {1, 2}:requiresGrad(true) end
      local want, wantX = f(make())
      local got, gotX = torch.compile(f)(make())
      assert.same({4, 8}, list(want))
      assert.same(list(want), list(got))
      assert.same(list(wantX), list(gotX))
   end)

   it('34: a function with its own backward runs it', function()
      local calls = 0
      local Twice = torch.autograd.Function.extend 'Twice'
      function Twice.forward(_, x) return x * 2 end
      function Twice.backward(_, dy) calls = calls + 1 return dy * 10 end
      local c = torch.compile(function(x)
         Twice.apply(x):sum():backward()
         return calls
      end)
      for i = 1, 3 do
         local x = torch.ones(2):requiresGrad(true)
         assert.equal(i, c(x))
         assert.same({10, 10}, list(x:grad()))
      end
      assert.equal(3, calls)
   end)

   it('36: the gradient of one result with respect to another', function()
      local c = torch.compile(function(x)
         local a = x * 2
         return a, torch.pow(a, 2)
      end)
      for _ = 1, 2 do
         local a, b = c(torch.Tensor {1, 2}:requiresGrad(true))
         local g = torch.autograd.grad({b:sum()}, {a})[1]
         assert.same({4, 8}, list(g))
      end
   end)

   it('37: branches on a size that leave one value are that value', function()
      local function f(x)
         local n = x:size(1)
         if n > 5 then return x * 1 elseif n < 5 then return x * 2 end
         return x * 3
      end
      local c = torch.compile(f)
      for _, n in ipairs {4, 5, 6, 7, 5, 3, 2, 9} do
         assert.same(list(f(torch.ones(n))), list(c(torch.ones(n))))
      end
   end)

   it('39: results of earlier calls are not overwritten', function()
      local c = torch.compile(function(x) return torch.tanh(x * 2), x:sum(2) end)
      local y1, s1 = c(torch.ones(3, 4))
      local kept, sum = list(y1), list(s1)
      for i = 2, 5 do c(torch.ones(3, 4) * i) end
      assert.same(kept, list(y1))
      assert.same(sum, list(s1))
   end)

   it('40: a model that nobody holds is freed with what was compiled for it', function()
      local weak = setmetatable({}, {__mode = 'k'})
      local function use()
         local net = nn.Sequential():add(nn.Linear(4, 4)):add(nn.Tanh())
         local c = torch.compile(function(x) return net:forward(x) end)
         c(torch.ones(2, 4))
         c(torch.ones(2, 4))
         torch.compile(net):forward(torch.ones(2, 4))
         weak[net], weak[c], weak[net:get(1).weight] = true, true, true
      end
      use()
      assert.is_true(collected(weak))
   end)

   it('41: what an aborted backward held is freed', function()
      local Stop = torch.autograd.Function.extend 'Stop'
      function Stop.forward(_, x) return x * 1 end
      function Stop.backward() error 'stop' end
      local weak = setmetatable({}, {__mode = 'k'})
      local live
      local function use()
         local x = torch.ones(100, 100):requiresGrad(true)
         local c = torch.compile(function(v)
            local y = torch.tanh(v)
            Stop.apply(y * 2):sum():backward()
         end)
         for _ = 1, 3 do assert.is_false(pcall(c, x)) end
         weak[x], weak[c] = true, true
      end
      use()
      assert.is_true(collected(weak))
      live = C.memory().live
      for _ = 1, 3 do use() end
      assert.is_true(collected(weak))
      assert.is_true(C.memory().live <= live + 80000)
   end)

   it('42: memory is flat over many calls', function()
      local c = torch.compile(function(x) return x + 1 end)
      local x = torch.ones(10)
      local function many(n)
         for _ = 1, n do c(x) end
         collectgarbage()
         collectgarbage()
         return collectgarbage 'count', C.memory().live
      end
      many(2000)
      local kb, bytes = many(2000)
      local kb2, bytes2 = many(20000)
      assert.is_true(kb2 <= kb + 20, kb2 - kb .. ' KB more')
      assert.is_true(bytes2 <= bytes + 1000)
   end)

   it('43: backward inside needs no more memory than outside', function()
      local n = 200000
      local function loss(x)
         local y = x
         for _ = 1, 6 do y = torch.tanh(y) end
         return y:sum()
      end
      local function peak(f)
         local x = torch.ones(n):requiresGrad(true)
         for _ = 1, 2 do f(x) end
         for _ = 1, 3 do collectgarbage() end
         local before = C.memory().live
         C.resetPeak()
         f(x)
         return C.memory().peak - before
      end
      local eager = peak(function(x) loss(x):backward() end)
      local inside = torch.compile(function(x) loss(x):backward() end)
      local outside = torch.compile(loss)
      assert.is_true(peak(inside) <= eager)
      assert.is_true(peak(function(x) outside(x):backward() end) <= 1.01 * eager)
      assert.equal(0, stats(inside).breaks)
   end)

   it('44: a compiled transformer block is one graph of few kernels, not more work than eager', function()
      local function block(x, wq, wk, wv)
         local q, k, v = x * wq, x * wk, x * wv
         local s = q * k:t()
         s = s - s:max(2):expandAs(s)
         local e = torch.exp(s / math.sqrt(16))
         return torch.cdiv(e, e:sum(2):expandAs(e)) * v + x
      end
      torch.manualSeed(1)
      local args = {torch.randn(64, 16), torch.randn(16, 16), torch.randn(16, 16), torch.randn(16, 16)}
      assert.compiles(block, {graphs = 1, breaks = 0}, unpack(args))
      local c = torch.compile(block)
      assert.near(c(unpack(args)), block(unpack(args)), 1e-12)
      local info = compile.states[c].entries[1].plan:info()
      assert.equal(6, info.calls) -- five products, whose transposed operand is read in place, and the position of each row's largest
      assert.equal(2, info.kernels) -- softmax in one pass, the sum with x in another
   end)

   it('45: guards grow with the layers, a few for each', function()
      local function guards(n)
         local layers = {}
         for i = 1, n do layers[i] = {scale = i / 2, bias = 1.5, w = torch.ones(3)} end
         return #torch.explain(function(x)
            for _, l in ipairs(layers) do x = torch.cmul(x, l.w) * l.scale + l.bias end
            return x
         end, torch.ones(3)).guards
      end
      local ten, twenty, forty = guards(10), guards(20), guards(40)
      assert.equal(2 * (twenty - ten), forty - twenty)
      assert.is_true((twenty - ten) / 10 <= 6)
   end)

   it('48: several programs that compile the same code for the first time at once all get it', function()
      local program = [[
         package.path, package.cpath = %q, %q
         require 'torch'
         local f = torch.compile(function(x) return torch.tanh(x * 2) + torch.sigmoid(x) * 48 end, {fullgraph = true})
         print(('%%.12f'):format(f(torch.ones(7)):sum()))
      ]]
      local path, cache = os.tmpname(), os.tmpname()
      os.remove(cache)
      local file = assert(io.open(path, 'w'))
      file:write(program:format(package.path, package.cpath))
      file:close()
      local pipes = {}
      for i = 1, 3 do pipes[i] = assert(io.popen(('RELUME_CACHE=%s luajit %s 2>&1'):format(cache, path))) end
      local want = ('%.12f\n'):format(7 * (math.tanh(2) + 48 / (1 + math.exp(-1))))
      for i = 1, 3 do
         assert.equal(want, pipes[i]:read '*a')
         pipes[i]:close()
      end
      os.remove(path)
      os.execute('rm -r ' .. cache)
   end)

   it('disable on a function inside leaves the rest compiled', function()
      local hook = torch.compiler.disable(function(x) return x end)
      local c = torch.compile(function(x) return hook(torch.tanh(x) * 2) + 1 end)
      local x = torch.ones(3)
      assert.near(c(x), torch.tanh(x) * 2 + 1, 1e-12)
      local r = torch.explain(c, x)
      assert.is_true(r.graphs >= 1)
      assert.is_true(r.nops >= 2)
   end)
end)
