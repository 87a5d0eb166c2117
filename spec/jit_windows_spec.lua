-- Numbers and windows that change: batches at any offset, indices, counters, and integers that ops need themselves.

local NUMBERS = {1, 2, 5, 9, 3, 40, 17, 60, 33}

-- Calls closures made by make(data, labels) eagerly and compiled with several numbers, compares results and data; returns the counts.
local function sweep(make, numbers)
   torch.manualSeed(1)
   local data, labels = torch.randn(70, 6), torch.range(1, 70)
   local data2, labels2 = data:clone(), labels:clone()
   local f, compiled = make(data, labels), torch.compile(make(data2, labels2))
   for _, i in ipairs(numbers or NUMBERS) do
      local want, got = {f(i)}, {compiled(i)}
      assert.equal(#want, #got)
      for k, x in ipairs(want) do
         if torch.isTensor(x) then assert.is_true((x:double() - got[k]:double()):abs():max() <= 1e-12)
         elseif type(x) == 'number' then assert.near(x, got[k], 1e-12 * math.max(1, math.abs(x)))
         else assert.same(x, got[k]) end
      end
      assert.is_true((data - data2):abs():max() <= 1e-12)
   end
   return torch.compiler.stats(compiled), compiled
end

describe('a number that changes', function()
   local compile, warnings
   before_each(function()
      compile = require 'relume.jit.compile'
      warnings, compile.warnings = compile.warnings, false
   end)
   after_each(function() compile.warnings = warnings end)

   local one = {
      narrow = function(data) return function(i) return data:narrow(1, i, 5) * 2 end end,
      ['two tensors'] = function(data, labels)
         return function(i) return torch.mul(data:narrow(1, i, 5), 2), labels:narrow(1, i, 5) + 1 end
      end,
      ['computed places'] = function(data) return function(i) return data:narrow(1, (i - 1) * 3 % 60 + 1, 5) * 2 end end,
      select = function(data) return function(i) return data[i] * 2, data:select(1, i):sum() end end,
      element = function(data, labels) return function(i) return data[3] * labels[i], labels[i] end end,
      sub = function(data) return function(i) return data:sub(i, i + 2) * 2 end end,
      ['writes to a window'] = function(data)
         return function(i)
            data:narrow(1, i, 2):add(1)
            return i
         end
      end,
      ['assignment to a row'] = function(data)
         return function(i)
            data[i] = i
            return i
         end
      end,
   }
   for name, make in pairs(one) do
      it(name .. ': needs one plan', function()
         local s = sweep(make)
         assert.same({2, 1, 1, 0}, {s.compiles, s.plans, s.texts, s.eager})
      end)
   end

   local many = {
      ['a window of what is read as a whole, too'] = function(data) return function(i) return data:narrow(1, i, 5) * 2 + data:sum() end end,
      ['a size'] = function() return function(i) return torch.zeros(i, 3) + i, torch.range(1, i) end end,
      ['a size of a window'] = function(data) return function(i) return data:narrow(1, 1, i):sum(1), i end end,
   }
   for name, make in pairs(many) do
      it(name .. ': needs plans, but no kernels of their own', function()
         local s = sweep(make)
         assert.is_true(s.compiles <= 3 and s.texts <= 2)
         assert.equal(0, s.eager)
      end)
   end

   it('that is never the same again does not make plans for ever', function()
      local numbers = {}
      for i = 1, 200 do numbers[i] = i end
      local s = sweep(function() return function(i) return torch.zeros(i) + 1 end end, numbers)
      assert.equal(2, s.compiles)
      assert.is_true(s.plans < 150 and s.eager > 40)
   end)

   it('out of range raises as eager does', function()
      local data = torch.randn(10, 2)
      local f = torch.compile(function(i) return data:narrow(1, i, 5) * 2 end)
      for _, i in ipairs {1, 2, 3} do f(i) end
      assert.has_error(function() f(9) end)
      assert.is_true((f(4) - data:narrow(1, 4, 5) * 2):abs():max() == 0)
   end)
end)

describe('a batch that is an argument', function()
   local data
   before_each(function() data = torch.randn(100, 6) end)

   it('may lie at any offset', function()
      local copy = data:clone()
      local function f(x)
         x:add(1)
         return torch.mul(x, 2), x:narrow(1, 2, 3), x:sum()
      end
      local c = torch.compile(f)
      for i = 1, 90, 7 do
         local a, b, s = f(data:narrow(1, i, 10))
         local a2, b2, s2 = c(copy:narrow(1, i, 10))
         assert.is_true((a - a2):abs():max() == 0 and (b - b2):abs():max() == 0)
         assert.near(s, s2, 1e-9)
         assert.equal(b:storageOffset(), b2:storageOffset())
         assert.equal(torch.pointer(copy:storage()), torch.pointer(b2:storage()))
      end
      assert.is_true((data - copy):abs():max() == 0)
      local s = torch.compiler.stats(c)
      assert.same({2, 1, 0}, {s.compiles, s.plans, s.eager})
   end)

   it('is no window where its place matters', function()
      for _, f in ipairs {function(x, y) return torch.cmul(x, y), x:storageOffset() end,
         function(x, y)
            x:add(1)
            return y * 2
         end, function(x) return x:storage():size() + x:sum() end} do
         local c, mine, other = torch.compile(f), data:clone(), data:clone()
         for i = 1, 12 do
            local a = {f(mine:narrow(1, i, 5), mine:narrow(1, i + 3, 5))}
            local b = {c(other:narrow(1, i, 5), other:narrow(1, i + 3, 5))}
            for k, x in ipairs(a) do
               if torch.isTensor(x) then assert.is_true((x - b[k]):abs():max() <= 1e-12) else assert.near(x, b[k], 1e-9) end
            end
            assert.is_true((mine - other):abs():max() <= 1e-12)
         end
      end
   end)

   it('and of any size, the last one short', function()
      local net = nn.Sequential():add(nn.Linear(6, 4)):add(nn.Tanh())
      local function f(x) return net:forward(x):sum() end
      local c = torch.compile(f)
      for _ = 1, 2 do
         for i = 1, 100, 16 do
            local x = data:narrow(1, i, math.min(16, 101 - i))
            assert.near(f(x), c(x), 1e-9)
         end
      end
      assert.is_true(torch.compiler.stats(c).compiles <= 4)
   end)
end)

describe('sizes that depend on data', function()
   it('are symbolic behind the break', function()
      local function f(x)
         local picked = x:maskedSelect(x:gt(0))
         return torch.mul(picked, 2):sum() / picked:size(1), x:nonzero():size(1)
      end
      local c = torch.compile(f)
      for seed = 1, 12 do
         torch.manualSeed(seed)
         local x = torch.randn(40)
         local a, n = f(x)
         local b, m = c(x)
         assert.near(a, b, 1e-9)
         assert.equal(n, m)
      end
      local report = torch.explain(c, torch.randn(40))
      assert.equal(4, report.compiles)
      assert.equal(0, report.limit)
   end)
end)
