-- Tables that grow in compiled code: losses in a list, places that change; few compiles, eager's contents.

local compile = require 'relume.jit.compile'
local function stats(f) return torch.compiler.stats(f) end

describe('tables that grow', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   -- Calls make()'s function n times, eager and compiled; what show() tells must agree each time.
   local function agree(make, n, most)
      local f, showF = make()
      local g, showG = make()
      local c = torch.compile(g)
      for i = 1, n do
         local a, b = f(torch.ones(2), i), c(torch.ones(2), i)
         assert.same(a, b)
         assert.same(showF(), showG(), 'call ' .. i)
      end
      assert.equal(0, stats(c).eager)
      assert.equal(0, stats(c).limit)
      assert.is_true(stats(c).compiles <= most, 'compiles ' .. stats(c).compiles)
      return c
   end

   it('by t[#t + 1] and table.insert', function()
      agree(function()
         local losses, names = {}, {}
         return function(x)
            losses[#losses + 1] = (x * 2):sum()
            table.insert(names, 'step')
            return #losses
         end, function() return {losses, names} end
      end, 20, 2)
   end)

   it('by two elements a call', function()
      agree(function()
         local t = {}
         return function(x, i)
            t[#t + 1] = x:sum() + i
            t[#t + 1] = i
            return #t
         end, function() return t end
      end, 12, 3)
   end)

   it('at a place that changes, also backwards and in the middle', function()
      agree(function()
         local t, o = {}, {5, 6, 7}
         return function(x, i)
            t[i] = x:sum()
            t[20 - i] = i
            o[i % 3 + 1] = i * 2
            o.last = i
            return i
         end, function() return {t, o} end
      end, 15, 3)
   end)

   it('and are read in the same call', function()
      agree(function()
         local t = {1}
         return function(_, i)
            t[#t + 1] = i
            local sum = 0
            for k = 1, #t do sum = sum + t[k] end
            for _, v in ipairs(t) do sum = sum + v end
            for _ in pairs(t) do sum = sum + 1 end
            return sum
         end, function() return t end
      end, 6, 6)
   end)

   it('and shrink again', function()
      agree(function()
         local t = {}
         return function(x, i)
            t[#t + 1] = x:sum() * i
            if i % 4 == 0 then t[#t] = nil end
            return #t
         end, function() return t end
      end, 6, 6)
   end)

   it('with a metatable that sees new elements', function()
      agree(function()
         local seen = {}
         local t = setmetatable({}, {__newindex = function(self, k, v) rawset(self, k, v * 2) seen.n = (seen.n or 0) + 1 end})
         return function(_, i) t[#t + 1] = i return #t end, function() return {t[1], seen.n, #t} end
      end, 6, 6)
   end)

   it('behind a graph break', function()
      local function make()
         local log = {}
         return function(x, i)
            log[#log + 1] = ('%d %.1f'):format(i, (x * i):sum())
            return x:sum()
         end, function() return log end
      end
      local f, shown = make()
      local g, got = make()
      local c = torch.compile(g)
      for i = 1, 20 do
         f(torch.ones(2), i)
         c(torch.ones(2), i)
      end
      assert.same(shown(), got())
      local r = torch.explain(c, torch.ones(2), 1)
      assert.equal(0, r.limit)
      assert.is_true(r.entries <= 8, tostring(r))
   end)

   it('behind a branch, with and without a break', function()
      for _, text in ipairs {false, true} do
         local function make()
            local log = {}
            return function(x, i)
               local y = x * 2
               if i % 3 == 0 then log[#log + 1] = text and ('%.3f'):format(y:sum() * i) or i end
               return y
            end, log
         end
         local f, shown = make()
         local g, got = make()
         local c = torch.compile(g)
         for i = 1, 30 do
            assert.is_true(torch.equal(f(torch.ones(2), i), c(torch.ones(2), i)))
         end
         assert.same(shown, got)
         local r = torch.explain(c, torch.ones(2), 1)
         assert.equal(0, r.limit)
         assert.is_true(r.compiles <= 8, tostring(r.compiles))
      end
   end)
end)
