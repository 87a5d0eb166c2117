-- Graph breaks: the breaking call or branch runs in the real VM, capture resumes behind it, nothing changes.

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

-- name -> {maker of a closure of (x, ...), most graphs, eager calls}; x has five elements, and is changed in place by some.
local programs = {
   ['a branch that is taken'] = {function() return function(x)
      local s = x:sum()
      if s > -1e9 then x:add(s) else x:mul(2) end
      return x * 3, s
   end end, 2},
   ['a branch that is not taken'] = {function() return function(x)
      local s = x:sum()
      if s > 1e9 then x:add(s) else x:mul(2) end
      return x * 3, s
   end end, 2},
   ['a call that acts outside'] = {function() return function(x)
      local y = x * 2
      silent()
      y:add(1)
      return y
   end end, 3},
   ['a numeric loop with a test in it'] = {function() return function(x)
      local n = 0
      for i = 1, 6 do
         x:add(i)
         if x:sum() > 4 then n = n + i end
      end
      return x, n
   end end, 4},
   ['a loop until a value is reached'] = {function() return function(x)
      local n = 0
      while x:sum() < 100 do
         x:mul(1.5):add(1)
         n = n + 1
      end
      return n, x
   end end, 3},
   ['a loop over pairs'] = {function() return function(x)
      local sum = 0
      for k, v in pairs {a = 1, b = 2, c = 3} do
         silent(k)
         sum = sum + v
         x:add(v)
      end
      return sum, x
   end end, 6},
   ['a loop over ipairs'] = {function() return function(x)
      local sum = 0
      for _, v in ipairs {5, 6, 7} do
         silent()
         sum = sum + v
         x:add(v)
      end
      return sum, x
   end end, 6},
   ['a loop bound that comes from a tensor'] = {function() return function(x)
      local sum = 0
      for i = 1, x:max() + 3 do
         sum = sum + i
         x:add(1)
      end
      return sum, x
   end end, 8},
   ['the text of a tensor'] = {function() return function(x)
      local y = x + 1
      local s = tostring(y)
      return #s, y * 2
   end end, 5},
   ['a string made of a loss'] = {function() return function(x)
      local y = x + 1
      local s = 'loss ' .. y:sum()
      return s, y * 2
   end end, 2},
   ['elements read into control flow'] = {function() return function(x)
      local sum = 0
      for i = 1, x:size(1) do
         if x[i] > 0 then sum = sum + x[i] end
      end
      return sum, x * 2
   end end, 20},
   ['many results of a breaking call'] = {function()
      local function g(...) silent() return ... end
      return function(x)
         local t = {g(x + 1, x * 2)}
         return t[1] + t[2], select('#', g(x, x))
      end
   end, 3},
   ['a breaking call in tail position'] = {function() return function(x)
      local y = x + 1
      return tostring(y:sum())
   end end, 1},
   ['results that go on to a breaking call'] = {function() return function(x)
      local y = x + 1
      local function two() return y:sum(), y * 2 end
      return tostring(two())
   end end, 2},
   ['variable arguments'] = {function() return function(x, ...)
      local y = x + 1
      silent()
      local a, b = ...
      return y, a, b, select('#', ...)
   end end, 2},
   ['variables that a closure changes'] = {function() return function(x)
      local n = 0
      local function inc() n = n + 1 end
      inc()
      x:add(1)
      silent()
      inc()
      n = n + 5
      return n, x * 2
   end end, 2},
   ['variables that a closure reads'] = {function() return function(x)
      local n = x:size(1)
      local function get() return n end
      x:add(get())
      silent()
      return get(), x * 2
   end end, 6},
   ['upvalues written on both sides'] = {function()
      local count = 0
      return function(x)
         count = count + 1
         local y = x * count
         silent()
         count = count + 1
         return y + count, count
      end
   end, 6},
   ['a table changed on both sides'] = {function() return function(x)
      local list = {}
      list[#list + 1] = x
      silent()
      local v = table.remove(list)
      silent()
      return v, #list
   end end, 0},
   ['a break in a callee'] = {function()
      local function g(x)
         x:add(1)
         silent()
         return x * 2
      end
      return function(x)
         local y = g(x)
         return y + g(y)
      end
   end, 6},
   ['a break in a function called last'] = {function()
      local function g(x)
         x:add(1)
         silent()
         return x * 2
      end
      return function(x)
         x:mul(2)
         return g(x)
      end
   end, 3},
   ['coroutines'] = {function() return function(x)
      local co = coroutine.wrap(function(a)
         local b = coroutine.yield(a + 1)
         silent()
         return b * 2
      end)
      local y = co(x)
      return co(y) + y
   end end, 3},
   ['errors caught inside'] = {function() return function(x)
      local y = x + 1
      local ok, e = pcall(function() return x + torch.ones(2) end)
      return ok, e, y * 2
   end end, 2},
   ['an error behind a break'] = {function()
      local calls = {}
      return function(x)
         calls[#calls + 1] = 1
         x:add(#calls)
         silent()
         error('boom ' .. #calls)
      end
   end, 6},
   ['names in run-time errors'] = {function()
      local t = {}
      return function(x)
         x:add(1)
         silent()
         return t.foo.bar
      end
   end, 3},
   ['random numbers on both sides'] = {function() return function(x)
      local y = torch.rand(5)
      silent()
      return x + y + torch.rand(5)
   end end, 2},
}

describe('behind a graph break', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   for name, program in pairs(programs) do
      it('everything is as eager leaves it: ' .. name, function()
         local eager, compiled = program[1](), torch.compile(program[1]())
         for round = 1, 3 do
            torch.manualSeed(round)
            local x = torch.randn(5)
            local y = x:clone()
            torch.manualSeed(round)
            local want = text(pcall(eager, x, 'one', 2))
            torch.manualSeed(round)
            local got = text(pcall(compiled, y, 'one', 2))
            assert.equal(want, got)
            assert.equal(text(x), text(y))
         end
         local report = torch.explain(compiled, torch.randn(5), 'one', 2)
         assert.is_true(report.breaks >= 1)
         assert.is_true(report.graphs <= program[2], tostring(report))
         assert.equal(0, torch.compiler.stats(compiled).eager)
      end)
   end

   it('gradient history stays whole', function()
      local function f(x)
         local w = x:clone():requiresGrad(true)
         local y = torch.cmul(w, w):sum()
         silent()
         y:backward()
         return w:grad()
      end
      local x = torch.randn(5)
      assert.equal(text(f(x)), text(torch.compile(f)(x)))
   end)

   it('long loops neither grow the stack nor compile again', function()
      local c = torch.compile(function(x, n)
         local steps = 0
         while x:sum() < n do
            x:add(1)
            steps = steps + 1
         end
         return steps
      end)
      assert.equal(3000, c(torch.zeros(1), 3000))
      assert.is_true(torch.explain(c, torch.zeros(1), 3000).compiles <= 6)
   end)

   it('side effects come before the call and are seen by it', function()
      local log, state = {}, {n = 0}
      local look = torch.compiler.disable(function(x) log[#log + 1] = state.n .. ':' .. x:sum() end)
      local c = torch.compile(function(x)
         state.n = state.n + 1
         x:add(1)
         look(x)
         state.n = state.n * 10
         x:mul(2)
         look(x)
      end)
      c(torch.zeros(2))
      assert.same({'1:2', '10:4'}, log)
   end)

   it('a callee is compiled by itself', function()
      local net = nn.Sequential():add(nn.Linear(4, 3)):add(nn.Tanh())
      local function loud(x)
         local y = net:forward(x)
         silent()
         return y:clone()
      end
      local c = torch.compile(function(x)
         local y = loud(x)
         return y * 2
      end)
      local x = torch.randn(2, 4)
      assert.equal(text((loud(x) * 2):view(-1)), text(c(x):view(-1)))
      local report = torch.explain(c, x)
      assert.is_true(report.graphs >= 2)
   end)
end)
