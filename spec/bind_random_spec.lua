-- Random numbers: seeds, states, generators, ranges of the draws, draws of one number.
local T = torch.Tensor

local function raises(pattern, f)
   local ok, err = pcall(f)
   assert.is_false(ok)
   assert.is_truthy(tostring(err):find(pattern), tostring(err))
end

describe('seeds', function()
   it('repeat streams', function()
      assert.equal(7, torch.manualSeed(7))
      local a, u = torch.rand(5), torch.uniform()
      torch.manualSeed(7)
      assert.is_true(torch.equal(a, torch.rand(5)))
      assert.equal(u, torch.uniform())
      assert.equal(7, torch.initialSeed())
      assert.equal('number', type(torch.seed()))
   end)

   it('states are tensors', function()
      local s = torch.getRNGState()
      local a = torch.randn(3)
      torch.setRNGState(s)
      assert.is_true(torch.equal(a, torch.randn(3)))
      raises('state', function() torch.setRNGState(T(3)) end)
   end)

   it('generators are independent', function()
      local g = torch.Generator()
      assert.equal('torch.Generator', torch.typename(g))
      torch.manualSeed(1)
      local want = torch.uniform()
      torch.manualSeed(g, 1)
      torch.manualSeed(1)
      torch.uniform(g)
      assert.equal(want, torch.uniform())
      torch.manualSeed(g, 1)
      assert.equal(want, torch.uniform(g))
      torch.manualSeed(g, 1)
      assert.equal(torch.uniform(g, 0, 10), want * 10)
   end)
end)

describe('draws', function()
   it('fill tensors in place', function()
      torch.manualSeed(3)
      local x = torch.FloatTensor(1000):uniform(-1, 1)
      assert.is_true(x:min() >= -1 and x:max() < 1 and math.abs(x:mean()) < 0.1)
      x:normal(2, 3)
      assert.is_true(math.abs(x:mean() - 2) < 0.4 and math.abs(x:std() - 3) < 0.3)
      x:bernoulli(0.25)
      assert.is_true(math.abs(x:mean() - 0.25) < 0.06)
      x:exponential(2)
      assert.is_true(x:min() >= 0 and math.abs(x:mean() - 0.5) < 0.1)
      x:geometric(0.5)
      assert.is_true(x:min() >= 1)
      x:logNormal()
      x:cauchy()
      local p = T{0, 1, 1, 0}
      assert.same({0, 1, 1, 0}, T(4):bernoulli(p):totable())
      assert.equal(0, T():uniform():nElement())
   end)

   it('refuse parameters that no such distribution has', function()
      local x = T(3)
      local function refused(text, f, ...)
         local ok, err = pcall(f, ...)
         assert.is_false(ok)
         assert.is_truthy(tostring(err):find(text, 1, true), tostring(err))
      end
      local nan = 0 / 0
      for _, p in ipairs {2, -0.5, nan} do
         refused('[bernoulli] probability; got', x.bernoulli, x, p)
         refused('[bernoulli] probability; got', torch.bernoulli, p)
      end
      for _, p in ipairs {0, 1, 2, nan} do refused('[geometric] probability; got', x.geometric, x, p) end
      for _, name in ipairs {'normal', 'logNormal'} do
         refused('[' .. name .. '] standard deviation; got -1, need 0 or more', x[name], x, 0, -1)
         refused('[' .. name .. '] standard deviation; got', torch[name], 0, nan)
      end
      assert.same({1, 1, 1}, x:bernoulli(1):totable())
      assert.same({0, 0, 0}, x:bernoulli(0):totable())
      assert.same({4, 4, 4}, x:normal(4, 0):totable())
   end)

   it('of integers stay in range', function()
      local x = torch.LongTensor(500):random(3, 5)
      assert.is_true(x:min() == 3 and x:max() == 5)
      x:random(2)
      assert.is_true(x:min() == 1 and x:max() == 2)
      for _ = 1, 20 do
         local r = torch.random(1, 3)
         assert.is_true(r >= 1 and r <= 3 and r == math.floor(r))
      end
      assert.is_true(torch.ByteTensor(100):random():max() <= 255)
      raises('%[random%]', function() torch.random(3, 1) end)
   end)

   it('make new tensors', function()
      assert.same({2, 3}, torch.rand(2, 3):size():totable())
      assert.equal('torch.FloatTensor', torch.randn(torch.FloatTensor(), 4):type())
      assert.same({1, 2, 3, 4, 5}, (torch.randperm(5):sort()):totable())
      assert.equal('torch.LongTensor', torch.randperm(torch.LongTensor(), 3):type())
   end)

   it('multinomial draws indices from 1', function()
      local i = torch.multinomial(T{0, 0, 1}, 4, true)
      assert.equal('torch.LongTensor', i:type())
      assert.same({3, 3, 3, 3}, i:totable())
      local p = torch.rand(300)
      p[1], p[77], p[300] = 0, 0, 0
      local many = torch.multinomial(p, 100000, true)
      local seen = torch.zeros(300):indexAdd(1, many, torch.ones(100000)):div(100000)
      assert.same({0, 0, 0}, {seen[1], seen[77], seen[300]})
      assert.is_true((seen - p / p:sum()):abs():max() < 0.002)
      local rows = torch.multinomial(T{{0, 1}, {1, 0}}, 1)
      assert.same({{2}, {1}}, rows:totable())
      assert.same({1, 2, 3}, (torch.multinomial(T{1, 1, 1}, 3):sort()):totable())
   end)

   it('alias method draws with the given weights', function()
      torch.manualSeed(5)
      local state = torch.multinomialAliasSetup(T{0.5, 0, 0.25, 0.25})
      local out = torch.LongTensor(4000)
      assert.equal(out, torch.multinomialAlias(out, state))
      assert.near(0.5, out:eq(1):sum() / 4000, 0.03)
      assert.equal(0, out:eq(2):sum())
      assert.near(0.25, out:eq(4):sum() / 4000, 0.03)
      raises('need 0 or more', function() torch.multinomialAliasSetup(T{-1, 2}) end)
   end)
end)

describe('mt19937', function()
   local before
   before_each(function()
      before = torch.getdefaultgenerator()
      torch.setdefaultgenerator('mt19937')
   end)
   after_each(function() torch.setdefaultgenerator(before) end)

   it('gives the words of the reference implementation', function()
      torch.manualSeed(5489) -- its default seed; first, second and 10000th word as the C++ standard and its authors publish them
      assert.equal(3499211612, torch.random())
      assert.equal(581869302, torch.random())
      for _ = 3, 9999 do torch.random() end
      assert.equal(4123659995, torch.random())
   end)

   it('draws uniform, bernoulli, integers and normal numbers from words as the original does', function()
      local function words(n)
         torch.manualSeed(9)
         local w = {}
         for i = 1, n do w[i] = torch.random() end
         torch.manualSeed(9)
         return w
      end
      local w = words(6)
      local u = torch.DoubleTensor(6):uniform(-2, 3)
      for i = 1, 6 do assert.equal(w[i] / 2^32 * 5 - 2, u[i]) end
      words(0)
      local f = torch.FloatTensor(6):uniform()
      for i = 1, 6 do assert.equal(torch.FloatTensor{w[i] / 2^32}[1], f[i]) end
      words(0)
      local b = torch.ByteTensor(6):bernoulli(0.5)
      for i = 1, 6 do assert.equal(w[i] / 2^32 <= 0.5 and 1 or 0, b[i]) end
      words(0)
      local r = torch.IntTensor(6):random(3, 12)
      for i = 1, 6 do assert.equal(w[i] % 10 + 3, r[i]) end
      words(0)
      local n = torch.DoubleTensor(3):normal(1, 2)
      for i = 1, 3 do
         local k = i <= 2 and 1 or 3
         local rho, angle = math.sqrt(-2 * math.log(1 - w[k + 1] / 2^32)), 2 * math.pi * w[k] / 2^32
         assert.is_true(math.abs(n[i] - (rho * (i == 2 and math.sin or math.cos)(angle) * 2 + 1)) < 1e-14)
      end
      assert.is_true(math.abs(torch.normal() - math.sqrt(-2 * math.log(1 - w[4] / 2^32)) * math.sin(2 * math.pi * w[3] / 2^32)) < 1e-14,
         'the second half of the pair')
   end)

   it('orders and picks as the original does', function()
      torch.manualSeed(4)
      local w = {torch.random(), torch.random(), torch.random()}
      torch.manualSeed(4)
      local want = {1, 2, 3, 4}
      for i = 1, 3 do
         local j = i + w[i] % (5 - i)
         want[i], want[j] = want[j], want[i]
      end
      assert.same(want, torch.totable(torch.randperm(4)))
      torch.manualSeed(4)
      local p = torch.multinomial(T{1, 2, 3, 4}, 3, true)
      for i = 1, 3 do
         local goal, sum, k = w[i] / 2^32, 0, 0
         repeat
            k = k + 1
            sum = sum + k / 10
         until sum >= goal
         assert.equal(k, p[i])
      end
      assert.same({1, 2, 3}, torch.totable((torch.multinomial(torch.ones(3), 3):sort())))
   end)

   it('goes on from a saved state, also in a file', function()
      torch.manualSeed(1)
      torch.randn(3) -- half a pair is left
      local s, g = torch.getRNGState(), torch.Generator('mt19937')
      assert.equal(5048, s:nElement())
      local a = torch.randn(4)
      torch.setRNGState(g, s)
      local h = torch.deserialize(torch.serialize(g))
      assert.is_true(torch.equal(a, torch.DoubleTensor(4):normal(h, 0, 1)))
      torch.setRNGState(s)
      assert.is_true(torch.equal(a, torch.randn(4)))
      s[16] = 255 -- words left: more than there are
      raises('state', function() torch.setRNGState(s) end)
      local p = torch.Generator('philox')
      torch.manualSeed(p, 8)
      assert.equal(torch.uniform(torch.deserialize(torch.serialize(p))), torch.uniform(p))
   end)

   it('is refused by other names', function()
      raises('kind; got .xorshift., need', function() torch.Generator('xorshift') end)
      raises('kind; got xorshift, need', function() torch.setdefaultgenerator('xorshift') end)
   end)

   it('gives compiled code the same numbers, in program order, and compiles again for the other kind', function()
      local function f(x)
         local u, unread = torch.rand(5), torch.rand(2) -- luacheck: ignore unread
         local m = torch.FloatTensor(3, 4):bernoulli(0.5)
         local n = torch.randn(3)
         return torch.cmul(x, m), torch.randperm(4), u, n, torch.multinomial(torch.ones(4), 3), torch.IntTensor(4):random(1, 6)
      end
      local c, x = torch.compile(f), torch.FloatTensor(3, 4):fill(2)
      for _, kind in ipairs {'mt19937', 'philox', 'mt19937'} do
         torch.setdefaultgenerator(kind)
         torch.manualSeed(3)
         local want = {f(x)}
         want[#want + 1] = torch.rand(3)
         torch.manualSeed(3)
         local got = {c(x)}
         got[#got + 1] = torch.rand(3)
         for i = 1, #want do assert.is_true(torch.equal(want[i], got[i]), kind .. ' ' .. i) end
      end
      assert.equal(2, torch.explain(c, x).compiles)
   end)

   it('masks dropout alike in eager and compiled training', function()
      local nn = require 'nn'
      torch.manualSeed(6)
      local net = nn.Sequential():add(nn.Linear(4, 8)):add(nn.Dropout(0.4)):add(nn.Linear(8, 2))
      local step = function(m, x)
         m:zeroGradParameters()
         local y = m:forward(x)
         m:backward(x, torch.ones(y:size()))
         return y:clone()
      end
      local twin, x = net:clone(), torch.randn(5, 4)
      local c = torch.compile(step)
      for i = 1, 3 do
         torch.manualSeed(i)
         local want = step(net, x)
         torch.manualSeed(i)
         assert.is_true((want - c(twin, x)):abs():max() < 1e-12)
         assert.is_true((net:get(1).gradWeight - twin:get(1).gradWeight):abs():max() < 1e-12)
      end
   end)
end)

describe('generators as arguments', function()
   it('stand before or behind the tensor, and the default one is torch._gen', function()
      local g = torch.Generator()
      torch.manualSeed(g, 5)
      local a = T(3):uniform(g, 1, 2)
      torch.manualSeed(5)
      assert.is_true(torch.equal(a, T(3):uniform(1, 2)))
      torch.manualSeed(torch._gen, 5)
      assert.is_true(torch.equal(a, T(3):uniform(torch._gen, 1, 2)))
   end)

   it('of their own are left to eager inside of compiled code', function()
      local g = torch.Generator()
      local c = torch.compile(function(x) return x + T(3):uniform(g, 0, 1) end)
      torch.manualSeed(g, 5)
      local want = T(3):uniform(g, 0, 1)
      torch.manualSeed(g, 5)
      assert.is_true(torch.equal(want, c(torch.zeros(3))))
   end)

   it('make nothing stale: a function without tensors is compiled again for another default type', function()
      local c = torch.compile(function() return torch.zeros(2) end)
      local was = torch.getdefaulttensortype()
      assert.equal(was, c():type())
      torch.setdefaulttensortype('torch.FloatTensor')
      local got = c():type()
      torch.setdefaulttensortype(was)
      assert.equal('torch.FloatTensor', got)
   end)
end)
