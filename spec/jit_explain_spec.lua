-- torch.explain: what it counts, names and measures; options of torch.compile; marks of torch.compiler.disable.

-- luacheck: globals explainspec
local compile = require 'relume.jit.compile'
local here = 'spec/jit_explain_spec.lua'

local function lineOf(text) -- number of the line of this file that holds a text
   local n = 0
   for line in io.lines(here) do
      n = n + 1
      if line:find(text, 1, true) and not line:find 'lineOf' then return n end
   end
end

describe('torch.explain', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   it('counts graphs, ops and kernels of a function that was never compiled', function()
      local r = torch.explain(function(x) return (x * 2):tanh():sum() end, torch.ones(3))
      assert.equal(1, r.graphs)
      assert.equal(0, r.breaks)
      assert.equal(1, r.ops[1].tanh)
      assert.equal(1, r.ops[1].sum)
      assert.is_true(r.kernels >= 1)
      assert.equal(0, r.compiles)
      assert.equal(0, r.entries)
   end)

   it('gives a break its line, the text of it, and a hint', function()
      local r = torch.explain(function(x)
         local y = x + 1
         print 'a line that prints' -- the break
         return y * 2
      end, torch.ones(2))
      local b = r.list[1]
      assert.equal('side-effect', b.id)
      assert.equal(('%s:%d'):format(here, lineOf '-- the break'), b.where)
      assert.equal("print 'a line that prints' -- the break", b.line)
      local text = tostring(r)
      assert.truthy(text:find(b.where, 1, true))
      assert.truthy(text:find(b.hint, 1, true))
      assert.truthy(text:find('what would help', 1, true))
   end)

   it('measures each guard and all of them', function()
      local o = {scale = 2, name = 'plain'}
      local r = torch.explain(function(x) if o.name == 'plain' then return x * o.scale end return x end, torch.ones(2))
      assert.is_true(#r.guards >= 3)
      local named
      for _, g in ipairs(r.guards) do
         assert.equal('number', type(g.ns))
         assert.is_true(g.ns >= 0 and g.ns < 1e6)
         named = named or g.text == 'o.name == "plain"' and g
      end
      assert.equal('eq', named.kind)
      assert.truthy(named.where:find(here, 1, true))
      assert.is_true(r.guardNs > 0 and r.guardNs < 1e6)
      assert.truthy(tostring(r):find('ns  o.name == "plain"', 1, true))
   end)

   it('changes nothing', function()
      local o = {n = 0}
      local x = torch.ones(2)
      torch.manualSeed(3)
      local first = torch.rand(1)[1]
      torch.manualSeed(3)
      torch.explain(function(y) o.n = o.n + 1 y:add(torch.rand(2)) return y end, x)
      assert.equal(0, o.n)
      assert.equal(2, x:sum())
      assert.equal(first, torch.rand(1)[1])
   end)

   it('says why it recompiled: the guard, its line, both values', function()
      local o = {mode = 'sum', k = 1}
      local c = torch.compile(function(x) return o.mode == 'sum' and x + o.k or x - o.k end)
      c(torch.ones(2))
      o.mode = 'difference'
      c(torch.ones(2))
      c(torch.ones(3))
      c(torch.FloatTensor(3))
      local r = torch.explain(c, torch.ones(2))
      assert.equal(r.compiles, r.entries)
      assert.equal(r.compiles - 1, #r.recompiles)
      local why = r.recompiles[1]
      assert.equal('o.mode == "sum"', why.guard)
      assert.equal('"sum"', why.was)
      assert.equal('"difference"', why.now)
      assert.truthy(why.where:find(here, 1, true))
      assert.equal('x', r.recompiles[2].name)
      assert.truthy(r.recompiles[2].was:find('(2)', 1, true))
      assert.truthy(r.recompiles[2].now:find('(3)', 1, true))
      local last = r.recompiles[#r.recompiles]
      assert.truthy(last.was:find 'DoubleTensor')
      assert.truthy(last.now:find 'FloatTensor')
      assert.truthy(tostring(r):find('was "sum", is "difference"', 1, true))
   end)

   it('says what would help where the same guard fails again', function()
      local c = torch.compile(function(x, name) return x + #name end)
      for i = 1, 12 do c(torch.ones(1), ('x'):rep(i)) end
      local r = torch.explain(c, torch.ones(1), 'x')
      assert.equal(8, r.entries)
      assert.equal(4, r.limit)
      assert.equal(1, #r.help)
      assert.truthy(r.help[1]:find '^name changes: compile one function per value')
   end)

   it('reports what the program raises', function()
      local r = torch.explain(function() error 'no data' end)
      assert.truthy(r.error:find 'no data$')
      assert.is_false(pcall(torch.explain, 3))
      assert.is_false(pcall(torch.explain, print))
   end)
end)

describe('options of torch.compile', function()
   local function message(...)
      local args, n = {...}, select('#', ...)
      local ok, e = pcall(function() torch.compile(unpack(args, 1, n)) end)
      assert.is_false(ok)
      return e
   end

   it('are checked by name, type and value', function()
      local f = function(x) return x end
      assert.truthy(message(f, {fast = true}):find("got 'fast', need fullgraph, dynamic, backend, mode, strict, outputs, onRecompile", 1, true))
      assert.truthy(message(f, {fullgraph = 1}):find('[compile] fullgraph; got 1, need true or false', 1, true))
      assert.truthy(message(f, {strict = 'yes'}):find("strict; got 'yes'", 1, true))
      assert.truthy(message(f, {dynamic = {}}):find 'dynamic; got table')
      assert.truthy(message(f, {mode = 'fastest'}):find "mode; got 'fastest', need 'default', 'reduce%-overhead' or 'max%-autotune'")
      assert.truthy(message(f, {backend = 'inductor'}):find "backend; got 'inductor', need 'c', 'eager' or a function")
      assert.truthy(message(f, {onRecompile = 'often'}):find "onRecompile; got 'often', need a function, 'warn', 'error' or 'eager'")
      assert.truthy(message(f, 'fullgraph'):find 'options; got string, need a table')
      assert.truthy(message({fulgraph = true}):find "got 'fulgraph'")
      assert.truthy(message(f, {fast = true}):find(here, 1, true))
   end)

   it('come first where a function is marked', function()
      local c = torch.compile {fullgraph = true} (function(x) print(x) return x end)
      assert.is_false(pcall(c, torch.ones(1)))
      assert.equal(3, torch.compile {mode = 'max-autotune', strict = true} (function(x) return x * 3 end)(torch.ones(1))[1])
   end)

   it('pick a backend by name', function()
      assert.same({'c', 'eager'}, torch.compiler.listBackends())
      local s = 0.5
      for _, name in ipairs(torch.compiler.listBackends()) do
         local c = torch.compile(function(x, y) return torch.mm(x, y):mul(s), x:sum() end, {backend = name})
         for i = 1, 3 do
            s = i / 2
            local z, sum = c(torch.ones(2, 2), torch.ones(2, 2))
            assert.equal(8 * s, z:sum())
            assert.equal(4, sum)
         end
         assert.equal(0, torch.compiler.stats(c).eager)
      end
   end)
end)

describe('torch.compiler.disable', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   -- Runs f compiled twice; true where g saw real tensors each time, with the code around it compiled.
   local function staysOut(f, seen, x)
      local c = torch.compile(f)
      for i = 1, 2 do
         c(x)
         assert.equal(i, #seen)
         assert.equal('number', type(seen[i]))
      end
      local r = torch.explain(c, x)
      assert.equal('disabled', r.list[1].id)
      assert.is_true(r.graphs >= 1)
      assert.equal(0, torch.compiler.stats(c).eager)
   end

   it('keeps a function out', function()
      local seen = {}
      local g = torch.compiler.disable(function(x) seen[#seen + 1] = x:sum() return x + 1 end)
      staysOut(function(x) return g(x * 2) * 2 end, seen, torch.ones(2))
   end)

   it('keeps methods of a class out', function()
      local seen = {}
      local class = torch.class('explainspec.Log', 'nn.Module')
      function class:updateOutput(x) seen[#seen + 1] = x:sum() self.output = x return x end -- luacheck: ignore self
      torch.compiler.disable(class, 'updateOutput')
      local net = nn.Sequential():add(nn.Linear(2, 2)):add(explainspec.Log()):add(nn.Tanh())
      staysOut(function(x) return net:forward(x) end, seen, torch.ones(1, 2))
      assert.is_false(pcall(torch.compiler.disable, class, 'nothing'))
   end)

   it('keeps one object out, others of its class in', function()
      local seen = {}
      local class = torch.class('explainspec.Twice', 'nn.Module')
      function class:updateOutput(x)
         if self.name then seen[#seen + 1] = x:sum() end
         self.output = x * 2
         return self.output
      end
      local a, b = explainspec.Twice(), explainspec.Twice()
      a.name = 'a'
      torch.compiler.disable(a)
      staysOut(function(x) return b:updateOutput(a:updateOutput(b:updateOutput(x))) end, seen, torch.ones(2))
   end)

   it('gives the original of a compiled function back', function()
      local f = function(x) return x end
      assert.equal(f, torch.compiler.disable(torch.compile(f)))
      assert.is_false(pcall(torch.compiler.disable, 3))
   end)
end)
