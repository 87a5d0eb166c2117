-- Graph breaks inside of calls: the graph up to the break, the breaking instruction, then the rest of each frame, innermost first.

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

-- name -> {maker of a closure of x, graphs, breaks, most compiles}.
local programs = {
   ['in a callee'] = {function()
      local function g(x) x:add(1) silent() return x * 2 end
      return function(x) return g(x) + 1 end
   end, 3, 1, 3},
   ['two calls deep, with several results'] = {function()
      local function h(x) x:mul(2) silent() x:add(3) return x, 7 end
      local function g(x) local y, k = h(x + 1) return y * k end
      return function(x) local y = g(x) return y + 1, g(y) end
   end, 4, 1, 5},
   ['in a closure made inside'] = {function()
      return function(x)
         local k = 3
         local function g(y) silent() return y * k end
         return g(x + 1) + k
      end
   end, 3, 1, 3},
   ['in a callee in a loop'] = {function()
      local function g(x, i) x:add(i) silent() return i end
      return function(x)
         local s = 0
         for i = 1, 5 do s = s + g(x, i) end
         return s, x
      end
   end, 3, 1, 4},
   ['a branch on a value in a callee'] = {function()
      local function big(x) if x:sum() > 3 then return x * 2 end return x - 1 end
      return function(x)
         local a = big(x)
         return a + big(a + 1)
      end
   end, 4, 1, 4},
   ['in a method that changes its object'] = {function()
      local Class = {}
      Class.__index = Class
      function Class:f(x) self.n = self.n + 1 silent() self.n = self.n * 2 return x + self.n end
      local o = setmetatable({n = 1}, Class)
      return function(x) local y = o:f(x) return y * 2, o.n end
   end, 3, 1, 4},
   ['in __index and __newindex'] = {function()
      local t = setmetatable({}, {__index = function() silent() return 5 end, __newindex = function(s, k, v) silent() rawset(s, k, v) end})
      return function(x) t.foo = 7 local a = t.bar return x * a + t.foo end
   end, 1, 1, 6},
   ['in arithmetic, comparison, concatenation and call metamethods'] = {function()
      local V = {}
      V.__index = V
      V.__add = function(a, b) silent() return setmetatable({x = a.x + b.x}, V) end
      V.__lt = function(a, b) silent() return a.x:sum() < b.x:sum() end
      V.__eq = V.__lt
      V.__concat = function() silent() return 'cat' end
      V.__call = function(s, k) silent() return s.x * k end
      V.__unm = function(s) silent() return s.x * -1 end
      return function(x)
         local a, b = setmetatable({x = x}, V), setmetatable({x = x + 1}, V)
         local r = (a + b).x
         if a < b then r = r + 1 else r = r + 2 end
         if a >= b then r = r * 3 end
         if a ~= b then r = r + 4 end
         if a <= b then r = r * 1.5 end
         return r, a .. b, a(3), -b
      end
   end, 12, 2, 24},
   ['in pcall'] = {function()
      return function(x)
         local ok, y = pcall(function(a) a:add(1) silent() return a * 2 end, x)
         return ok, y + 1
      end
   end, 3, 1, 3},
   ['in pcall in pcall, before an error'] = {function()
      return function(x)
         local ok, inner, e = pcall(function()
            x:add(1)
            local good, message = pcall(function() silent() x:mul(2) error 'deep' end)
            return good, message
         end)
         return ok, inner, e, x * 2
      end
   end, 3, 1, 4},
   ['a run-time error in pcall'] = {function()
      return function(x)
         local ok, e = pcall(function(a) a:add(1) local t = nil a:mul(2) return t.foo end, x)
         return ok, e, x * 2
      end
   end, 2, 0, 2},
   ['in xpcall, before an error that is a table'] = {function()
      return function(x)
         local ok, e = xpcall(function() x:add(1) silent() error {code = x:sum()} end, function(e) return e.code end)
         return ok, e, x * 2
      end
   end, 3, 1, 3},
   ['in noGrad'] = {function()
      return function(x)
         local y = torch.noGrad(function(a) silent() return a * 2 end, x)
         return y + 1
      end
   end, 2, 1, 3},
   ['in a recursion'] = {function()
      local function r(x, n) if n == 0 then silent() return x end local y = r(x + 1, n - 1) return y * 2 end
      return function(x) return r(x, 6) + 1 end
   end, 3, 1, 4},
   ['in calls whose results all go on'] = {function()
      local function two(x) silent() return x, x * 2, 3 end
      local function sum(...) local s = 0 for i = 1, select('#', ...) do s = select(i, ...) + s end return s end
      return function(x)
         local t = {two(x)}
         return sum(two(x + 1)), t[2] + t[3], sum(1, two(x))
      end
   end, 4, 1, 5},
   ['in a function with variable arguments'] = {function()
      local function g(x, ...) silent() return select('#', ...), x, ... end
      local function f(...) return g(...) end
      return function(x) local n, y, a, b = f(x + 1, 2, x) return n, y * a, b end
   end, 3, 1, 3},
   ['in an iterator'] = {function()
      local function range(n, i) i = i + 1 silent() if i <= n then return i end end
      return function(x)
         local s = 0
         for i in range, 4, 0 do s = s + i x:add(i) end
         return s, x
      end
   end, 3, 1, 8},
   ['in a loop over matches'] = {function()
      return function(x)
         local n = 0
         for _ in ('a b c'):gmatch '%a' do silent() x:add(1) n = n + 1 end
         return n, x
      end
   end, 1, 2, 5},
   ['in the order of a sort'] = {function()
      return function(x)
         local t = {3, 1, 2}
         table.sort(t, function(a, b) silent() return a < b end)
         return t[1], x * t[3]
      end
   end, 1, 1, 2},
}

describe('a graph break at depth', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   for name, program in pairs(programs) do
      it('leaves everything as eager does: ' .. name, function()
         local eager, compiled = program[1](), torch.compile(program[1]())
         for round = 1, 3 do
            torch.manualSeed(round)
            local x = torch.randn(5)
            local y = x:clone()
            assert.equal(text(pcall(eager, x)), text(pcall(compiled, y)))
            assert.equal(text(x), text(y))
         end
         local report = torch.explain(compiled, torch.randn(5))
         assert.is_true(report.graphs <= program[2], tostring(report))
         assert.equal(program[3], report.breaks, tostring(report))
         assert.is_true(report.compiles <= program[4], tostring(report))
         assert.equal(0, torch.compiler.stats(compiled).eager)
      end)
   end

   it('compiles a resume point once for all closures of a function', function()
      local function make(k) return function(x) local y = x * k silent() return y + k end end
      local fs = {make(2), make(3), make(4)}
      local c = torch.compile(function(x, i) return fs[i](x) * 2 end)
      for round = 1, 2 do
         for i = 1, 3 do assert.equal((round * (i + 1) + i + 1) * 2, c(torch.ones(1) * round, i)[1]) end
      end
      assert.is_true(torch.explain(c, torch.ones(1), 1).compiles <= 9)
   end)
end)

describe('an error in compiled code', function()
   local cases = {
      ['from error'] = function(x) x:add(1) error('bad ' .. x:size(1)) end,
      ['from error, above the function'] = function(x) x:add(1) error('bad', 2) end,
      ['from a callee, at the caller'] = (function()
         local function g(x) x:add(1) error('bad', 2) end
         return function(x) x:mul(2) g(x) return x end
      end)(),
      ['that is a table'] = function(x) x:add(1) error {code = 5} end,
      ['from assert'] = function(x) x:add(1) assert(x:dim() == 2, 'need two dimensions') end,
      ['from a missing field'] = function(x) x:add(1) local t = {} return t.a.b end,
      ['from a call of nil'] = function(x) x:add(1) local t = {} return t.method(x) end,
      ['from arithmetic on nil'] = function(x) x:add(1) local t = {} return t.missing + x:size(1) end,
      ['from a tensor op'] = function(x) x:add(1) local y = x:clone():resize(7) return x + y end,
      ['from a callee, in a tensor op'] = (function()
         local function g(x) x:mul(3) return torch.mm(x, x) end
         return function(x) x:add(1) local y = g(x) return y end
      end)(),
   }
   local function values(e) return type(e) == 'table' and e.code or e end

   for name, f in pairs(cases) do
      it('comes with the same message, after the same effects: ' .. name, function()
         compile.warnings = false
         local c = torch.compile(f)
         for round = 1, 2 do
            local x = torch.ones(3) * round
            local y = x:clone()
            local ok, e = pcall(function() local r = f(x) return r end)
            local ok2, e2 = pcall(function() local r = c(y) return r end)
            assert.is_false(ok or ok2)
            assert.equal((tostring(values(e)):gsub(':%d+:', '')), (tostring(values(e2)):gsub(':%d+:', '')))
            assert.equal(text(x), text(y))
         end
         compile.warnings = true
         assert.equal(1, torch.compiler.stats(c).compiles)
         assert.equal(0, torch.compiler.stats(c).eager)
      end)
   end

   it('comes at the same line', function()
      local function f(x) x:add(1) error('bad', 2) end
      local c, where = torch.compile(f), {}
      for i, g in ipairs {f, c, c} do
         local _, e = pcall(function() local r = g(torch.ones(2)) return r end)
         where[i] = e
      end
      assert.equal(where[1], where[2])
      assert.equal(where[1], where[3])
   end)
end)
