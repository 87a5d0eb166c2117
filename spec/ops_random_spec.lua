-- Random ops: one seed gives one run, eager and compiled draw the same numbers, and the numbers have the distribution they claim.
local C = require 'relume.core'
local ops = require 'support.ops'
local layout = require 'support.layout'

local floats = { 'Half', 'BFloat16', 'Float', 'Double' }

-- Attributes, then range, mean and variance of the draws; n is their number.
local n = 20000
local draws = {
   rand = { { { n } }, 0, 1, 1 / 2, 1 / 12 },
   randn = { { { n } }, -8, 8, 0, 1 },
   uniform = { { { n }, -1, 3 }, -1, 3, 1, 16 / 12 },
   normal = { { { n }, 2, 3 }, -30, 30, 2, 9 },
   bernoulli = { { { n }, 0.3 }, 0, 1, 0.3, 0.21 },
   exponential = { { { n }, 2 }, 0, 20, 1 / 2, 1 / 4 },
   geometric = { { { n }, 0.75 }, 1, 200, 4, 12 },
   log_normal = { { { n }, 0, 0.5 }, 0, 50, math.exp(0.125), (math.exp(0.25) - 1) * math.exp(0.25) },
   cauchy = { { { n }, 1, 2 }, -math.huge, math.huge }, -- no moments
}

local exact = { rand = true, bernoulli = true, geometric = true }

local function draw(name, dtype)
   local attrs = { unpack(draws[name][1]) }
   attrs[#attrs + 1] = dtype
   return C.op[name](unpack(attrs))
end

local function recorded(f)
   local g = C.graphBegin()
   local ok, err = pcall(function() g:output(f()) end)
   g:stop()
   if not ok then error(err, 0) end
   return (g:compile({}):run({}, {}))
end

local function same(a, b)
   local x, y = layout.array(a), layout.array(b)
   if x.n ~= y.n then return false end
   for i = 1, x.n do
      if x[i] ~= y[i] then return false, ('element %d: %.17g, %.17g'):format(i, x[i], y[i]) end
   end
   return true
end

-- Compiled transforms of the draws round once where eager rounds after every op.
local function near(a, b, dtype)
   local x, y = layout.array(a), layout.array(b)
   local eps = 16 * ops.kind(dtype).eps
   for i = 1, x.n do
      if math.abs(x[i] - y[i]) > eps * (1 + math.abs(x[i])) * 4 then return false, ('%s, element %d: %.9g, %.9g'):format(dtype, i, x[i], y[i]) end
   end
   return x.n == y.n
end

local function moments(a)
   local mean, var, least, most = 0, 0, math.huge, -math.huge
   for i = 1, a.n do
      mean, least, most = mean + a[i] / a.n, math.min(least, a[i]), math.max(most, a[i])
   end
   for i = 1, a.n do var = var + (a[i] - mean) ^ 2 / a.n end
   return mean, var, least, most
end

describe('random op', function()
   for name, about in pairs(draws) do
      describe(name, function()
         it('repeats with its seed and goes on without it', function()
            for _, dtype in ipairs(floats) do
               torch.manualSeed(7)
               local first, second = draw(name, dtype), draw(name, dtype)
               torch.manualSeed(7)
               assert.is_true(same(first, draw(name, dtype)))
               assert.is_false(same(first, second))
            end
         end)

         it('draws compiled what it draws eagerly', function()
            for _, dtype in ipairs(name == 'cauchy' and { 'Double' } or floats) do -- near a pole of tan, narrow types say nothing
               torch.manualSeed(3)
               local eager, after = draw(name, dtype), draw('rand', 'Double')
               torch.manualSeed(3)
               local compiled = recorded(function() return draw(name, dtype) end)
               assert.is_true(exact[name] and same(eager, compiled) or near(eager, compiled, dtype))
               assert.is_true(same(after, draw('rand', 'Double')), 'the generator stands elsewhere after the plan')
            end
         end)

         if about[4] then
            it('has its mean, variance and range', function()
               torch.manualSeed(11)
               local mean, var, least, most = moments(layout.array(draw(name, 'Double')))
               local deviation = math.sqrt(about[5] / n)
               assert.is_true(math.abs(mean - about[4]) < 5 * deviation, ('mean %g, need %g'):format(mean, about[4]))
               assert.is_true(math.abs(var / about[5] - 1) < 0.15, ('variance %g, need %g'):format(var, about[5]))
               assert.is_true(least >= about[2] and most <= about[3], ('range %g .. %g'):format(least, most))
            end)
         end
      end)
   end

   it('randperm orders every position once', function()
      torch.manualSeed(5)
      local seen, p = {}, layout.array(C.op.randperm(100, 'Long'))
      for i = 1, 100 do seen[p[i]] = true end
      for i = 0, 99 do assert.is_true(seen[i]) end
   end)

   it('dropout zeros with its probability, scales the rest, and masks alike when compiled', function()
      local x = torch.FloatTensor(200, 100):fill(1)
      torch.manualSeed(9)
      local eager = C.op.dropout(x, 0.25)
      local mean = moments(layout.array(eager:eq(0)))
      assert.is_true(math.abs(mean - 0.25) < 0.02)
      assert.near(eager:max(), 1 / 0.75, 1e-6)
      torch.manualSeed(9)
      local g = C.graphBegin()
      local ok, err = pcall(function() g:output(C.op.dropout(g:input(x), 0.25)) end)
      g:stop()
      assert.is_true(ok, err)
      local compiled = g:compile({}):run({ x }, {})
      assert.is_true(same(eager:eq(0), compiled:eq(0)))
      assert.near(compiled, eager, 1e-6)
   end)

   it('is covered here or by the table of draws', function()
      local other = { randperm = true, multinomial = true, dropout = true, bernoulli_like = true }
      for _, row in ipairs(ops.rows) do
         if row.kind == 'RAND' or row.random then assert.is_true(draws[row.name] ~= nil or other[row.name] == true, row.name) end
      end
   end)

   it('bernoulli_like follows each probability', function()
      torch.manualSeed(2)
      local p = torch.FloatTensor(2, 5000)
      p:narrow(1, 1, 1):fill(0.1)
      p:narrow(1, 2, 1):fill(0.9)
      local r = C.op.bernoulli_like(p)
      assert.is_true(math.abs(r:narrow(1, 1, 1):mean() - 0.1) < 0.03)
      assert.is_true(math.abs(r:narrow(1, 2, 1):mean() - 0.9) < 0.03)
   end)

   it('multinomial draws by weight, without replacement each once', function()
      torch.manualSeed(4)
      local weights = torch.FloatTensor { { 0, 1, 3, 0 } }
      local r = layout.array(C.op.multinomial(weights, 4000, true))
      local counts = { 0, 0, 0, 0 }
      for i = 1, r.n do counts[r[i] + 1] = counts[r[i] + 1] + 1 end
      assert.equal(0, counts[1] + counts[4])
      assert.is_true(math.abs(counts[3] / 4000 - 0.75) < 0.05)
      local once = layout.array(C.op.multinomial(torch.FloatTensor { { 1, 2, 3, 4 } }, 4, false))
      local seen = {}
      for i = 1, 4 do seen[once[i]] = true end
      for i = 0, 3 do assert.is_true(seen[i]) end
   end)
end)
