-- Graph breaks inside of calls, more forms: each is as eager leaves it, with the same few graphs and compiles.

-- luacheck: ignore 631 421 422 431 432 581
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

-- name -> {maker of a closure of x, most graphs, breaks, most compiles}.
local programs = {
   ['forty calls deep'] = {function() local function r(x, n) if n == 0 then silent() return x end local y = r(x + 1, n - 1) return y * 1.01 end
      return function(x) return r(x, 40) + 1 end end, 4, 1, 5},
   ['in a function given to gsub'] = {function() return function(x) local n = 0 local s = ('abc'):gsub('%a', function(c) n = n + 1 silent() return c .. n end) silent() n = n + 1 return s, n, x * n end end, 1, 1, 3},
   ['in a function given to foreach'] = {function() return function(x) local n = 0 table.foreach({5, 6, k = 7}, function(k, v) n = n + v silent() end) return n, x + n end end, 1, 1, 2},
   ['in the condition of a loop'] = {function() local function done(x) return x:sum() > 50 end return function(x) local k = 0 while not done(x) do x:add(1) k = k + 1 end return k, x end end, 2, 1, 5},
   ['in a chain of methods'] = {function() local C = {} C.__index = C function C.new() return setmetatable({v = 0}, C) end function C:add(x) silent() self.v = self.v + x:sum() return self end function C:get() return self.v end
      return function(x) return C.new():add(x):add(x * 2):add(x):get(), x end end, 3, 1, 6},
   ['in a constructor'] = {function() local C = setmetatable({}, {__call = function(cls, x) local o = setmetatable({}, {__index = cls}) o:init(x) return o end}) function C:init(x) silent() self.x = x * 2 end function C:f() return self.x + 1 end
      return function(x) local o = C(x) return o:f(), o.x end end, 6, 1, 8},
   ['with many arguments and results'] = {function() local function g(a,b,c,d,e,f,h,...) silent() return a+b+c, d, e, f, h, ... end return function(x) local a,b,c,d,e,f,h = g(x, x, x, 1, 2, nil, 'q', x, 9) return a, b, c, d, e, f, h end end, 1, 1, 3},
   ['in nested loops'] = {function() local function g(x, i, j) if (x:sum() + i * j) % 2 < 1 then return i end return j end return function(x) local s = 0 for i = 1, 3 do for j = i, 3 do s = s + g(x, i, j) end end return s, x end end, 4, 1, 7},
   ['before an early return'] = {function() local function g(x) for i = 1, 10 do if x:sum() + i > 5 then return i, x * i end end return 'none' end return function(x) local i, y = g(x) if y then return i, y + 1 end return i end end, 5, 1, 5},
   ['in a function that keeps its results'] = {function() local cache = {} local function memo(k, x) if not cache[k] then silent() cache[k] = x:sum() end return cache[k] end return function(x) return memo('a', x) + memo('b', x * 2) + memo('a', x), x end end, 4, 1, 6},
   ['in calls in tail position'] = {function() local function h(x) silent() return x + 1 end local function g(x) return h(x * 2) end return function(x) local y = g(x) return (g(y)) end end, 3, 1, 4},
   ['before a run-time error in xpcall'] = {function() return function(x) local ok, e = xpcall(function() silent() x:add(1) local t = nil return t.y end, function(m) return 'H:' .. m end) return ok, e, x end end, 1, 1, 3},
   ['before an error at the caller'] = {function() local function h(x) silent() x:add(1) error('deep error', 2) end local function g(x) x:mul(2) h(x) return 1 end return function(x) local r = g(x) return r end end, 2, 1, 2},
   ['in a loop of goto'] = {function() return function(x) local i = 0 ::top:: i = i + 1 silent() x:add(i) if x:sum() < 30 and i < 9 then goto top end return i, x end end, 2, 2, 5},
   ['in repeat until'] = {function() return function(x) local i = 0 repeat i = i + 1 local s = x:add(1):sum() silent() until s > 20 or i > 5 return i, x end end, 2, 1, 3},
   ['in a chain of concatenations'] = {function() local mt = {__concat = function(a, b) silent() return (type(a) == 'table' and a.s or a) .. (type(b) == 'table' and b.s or b) end} return function(x) local o = setmetatable({s = 'o'}, mt) return 'a' .. 'b' .. o .. 'c', x + 1 end end, 1, 1, 2},
   ['none in the length of a table'] = {function() return function(x) local t = setmetatable({1,2,3}, {__len = function() silent() return 9 end}) return #t, x + #t end end, 1, 0, 1},
   ['in pcall of pcall'] = {function() return function(x) local a, b = pcall(pcall, function(k) silent() return k + 1 end, x) return a, b, x end end, 1, 1, 3},
   ['in comparisons'] = {function() local mt = {__eq = function(a, b) silent() return a.k == b.k end, __lt = function(a, b) silent() return a.k < b.k end} return function(x) local a, b = setmetatable({k=1}, mt), setmetatable({k=2}, mt) local s = '' if a == b then s = s .. 'eq' end if a ~= b then s = s .. 'ne' end if a <= b then s = s .. 'le' end if a > b then s = s .. 'gt' end return s, not (a < b), x + 1 end end, 1, 1, 9},
}

describe('a graph break', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   for name, program in pairs(programs) do
      it('leaves everything as eager does: ' .. name, function()
         local eager, compiled = program[1](), torch.compile(program[1]())
         for round = 1, 3 do
            torch.manualSeed(round)
            local x = torch.randn(3)
            local y = x:clone()
            assert.equal(text(pcall(eager, x)), text(pcall(compiled, y)))
            assert.equal(text(x), text(y))
         end
         torch.manualSeed(4)
         local report = torch.explain(compiled, torch.randn(3))
         assert.is_true(report.graphs <= program[2] + 1, tostring(report))
         assert.equal(program[3], report.breaks, tostring(report))
         assert.is_true(report.compiles <= program[4] + 1, tostring(report))
         assert.equal(0, torch.compiler.stats(compiled).eager)
      end)
   end
end)
