-- Variables that closures change, shared across graph breaks: closures made inside, the frames that made them, and what they were given to.

local compile = require 'relume.jit.compile'

local function text(...)
   local out = {}
   for i = 1, select('#', ...) do
      local v = select(i, ...)
      out[i] = type(v) == 'userdata' and table.concat(v:totable(), ' ') or tostring(v)
   end
   return table.concat(out, ' | ')
end

local function silent() return io.write '' end

-- name -> {maker of a closure of (x, ...), graphs, most compiles of three calls}.
local programs = {
   ['changed by a closure and by its frame'] = {function()
      return function(x)
         local n = 0
         local function inc() n = n + 1 end
         inc() x:add(1) silent() inc()
         n = n + 5
         silent() inc()
         return n, x * 2
      end
   end, 3, 4},
   ['read by one closure, written by another'] = {function()
      return function(x)
         local n = 1
         local function get() return n end
         local function set(v) n = v end
         silent() set(5) silent()
         local a = get()
         n = n + 1
         silent()
         return a, get(), n, x * n
      end
   end, 2, 6},
   ['changed by a closure given to a function that breaks'] = {function()
      local function each(f) for i = 1, 3 do silent() f(i) end end
      return function(x)
         local s = 0
         each(function(i) s = s + i end)
         x:add(s)
         return s, x
      end
   end, 1, 4},
   ['changed on both sides of a break in the closure'] = {function()
      local function each(x, f) for i = 1, 3 do x:add(1) f(i) end end
      return function(x)
         local s = 0
         each(x, function(i) silent() s = s + i silent() end)
         x:add(s)
         return s, x
      end
   end, 3, 8},
   ['changed by closures made in the real VM'] = {function()
      return function(x)
         local n = 0
         local function make() return function() n = n + 1 return n end end
         local a = torch.compiler.disable(make)()
         a() silent() a()
         n = n + 10
         return a(), n, x + n
      end
   end, 1, 2},
   ['of a closure that is kept'] = {function()
      local keep = {}
      return function(x)
         local n = 0
         keep[#keep + 1] = function() n = n + 1 return n end
         silent()
         n = n + 10
         local r = keep[#keep]()
         silent()
         return r, n, keep[1](), x * n
      end
   end, 2, 8},
   ['one for each round of a loop'] = {function()
      return function(x)
         local fs, s = {}, 0
         for i = 1, 4 do
            local k = i
            fs[i] = function() k = k + 1 return k end
            silent()
            k = k * 2
            x:add(fs[i]())
            s = s + k
         end
         return s, fs[1](), fs[2](), fs[4](), x
      end
   end, 8, 9},
   ['of a loop itself'] = {function()
      return function(x)
         local s = 0
         for i = 1, 3 do
            local function f() i = i + 10 end
            silent() f()
            s = s + i
         end
         return s, x
      end
   end, 0, 3},
   ['in and, or and swaps'] = {function()
      return function(x)
         local n, m
         local function f() n = 1 m = 2 end
         silent()
         n = n or 7
         m = m and 3 or 4
         local k = n and m
         silent() f()
         n, m = m, n
         return n, m, k, x
      end
   end, 0, 4},
   ['in tests of values'] = {function()
      return function(x)
         local n = x:size(1)
         local function f(d) n = n + d end
         if x:sum() > n then f(2) else f(3) end
         while x:sum() < n * 10 do
            x:add(1) f(0.5)
            if n > 6 then break end
         end
         return n, x
      end
   end, 4, 4},
   ['returned, in tail position, with variable arguments'] = {function()
      return function(x, ...)
         local n = select('#', ...)
         local function f(...) n = n + select('#', ...) return n, ... end
         silent() f(...) silent()
         if n < 0 then return n end
         return f(1, ...)
      end
   end, 0, 4},
   ['in indexing, arithmetic, concatenation and comparison'] = {function()
      return function(x)
         local t, k, v = {}, 'a', 1
         local function change() t, k, v = {z = 1}, k .. 'b', v + 1 end
         silent()
         t[k] = v
         change() silent()
         t[k] = v
         t.q, t[1] = v, v
         return t[k], t.q, t[1], #t, -v, v .. k, x * v, v > 1, v == 2, k == 'ab', v <= 2
      end
   end, 2, 6},
   ['in pcall, before an error'] = {function()
      return function(x)
         local n = 0
         local ok, e = pcall(function() n = n + 1 silent() n = n + 1 error('e' .. n) end)
         n = n * 10
         return ok, e, n, x + n
      end
   end, 1, 3},
   ['in a count of evaluations'] = {function()
      return function(x)
         local calls = 0
         local function feval(p) calls = calls + 1 silent() return p:sum() end
         local s = feval(x) + feval(x * 2)
         return s, calls
      end
   end, 3, 5},
}

describe('a variable that closures change', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   for name, program in pairs(programs) do
      it('is one variable on both sides of a break: ' .. name, function()
         local eager, compiled = program[1](), torch.compile(program[1]())
         for round = 1, 3 do
            torch.manualSeed(round)
            local x = torch.randn(5)
            local y = x:clone()
            assert.equal(text(pcall(eager, x, 'p', 2)), text(pcall(compiled, y, 'p', 2)))
            assert.equal(text(x), text(y))
         end
         local report = torch.explain(compiled, torch.randn(5), 'p', 2)
         assert.is_true(report.breaks >= 1)
         assert.is_true(report.graphs <= program[2], tostring(report))
         assert.is_true(report.compiles <= program[3], tostring(report))
         assert.equal(0, torch.compiler.stats(compiled).eager)
      end)
   end
end)
