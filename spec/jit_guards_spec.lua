-- Guards: each kind of fact that a closure read, changed alone, gives one recompile and eager's results; a fact that was not read gives none.

local compile = require 'relume.jit.compile'

-- make() -> function of x, change: a function that changes exactly one fact. other: how many compiles the change costs (1).
local facts = {}
local function fact(name, make) facts[#facts + 1] = {name = name, make = make} end

fact('an upvalue', function()
   local scale = 'double'
   return function(x) return scale == 'double' and x * 2 or x * 3 end, function() scale = 'triple' end
end)
fact('a global', function()
   _G.guardspecMode = 'a'
   return function(x) return _G.guardspecMode == 'a' and x + 1 or x + 2 end, function() _G.guardspecMode = 'b' end
end)
fact('a field of a table', function()
   local o = {deep = {on = true}}
   return function(x) return o.deep.on and x + 1 or x - 1 end, function() o.deep.on = false end
end)
fact('a field that was absent', function()
   local o = {}
   return function(x) return o.bias and x + o.bias or x end, function() o.bias = torch.ones(2) end
end)
fact('a table in its place', function()
   local o = {inner = {k = 1}}
   return function(x) return x + o.inner.k end, function() o.inner = {k = 5} end
end)
fact('a field of a class', function()
   local Class = {factor = 'two'}
   Class.__index = Class
   local o = setmetatable({}, Class)
   return function(x) return o.factor == 'two' and x * 2 or x * 7 end, function() Class.factor = 'seven' end
end)
fact('a metatable', function()
   local function class(k) return {__index = function() return k end} end
   local o = setmetatable({}, class(2))
   return function(x) return x * o.k end, function() setmetatable(o, class(4)) end
end)
fact('a function', function()
   local act = function(x) return x * 2 end
   return function(x) return act(x) end, function() act = function(x) return x * 3 end end
end)
fact('an upvalue of a function that is called', function()
   local mode = true
   local function act(x) return mode and x * 2 or x * 9 end
   return function(x) return act(x) end, function() mode = false end
end)
fact('the length of a list', function()
   local list = {1, 2}
   return function(x)
      for _, v in ipairs(list) do x = x + v end
      return x
   end, function() list[3] = 4 end
end)
fact('the keys of a table', function()
   local t = {a = 1}
   return function(x)
      for _, v in pairs(t) do x = x + v end
      return x
   end, function() t.b = 10 end
end)
fact('the training flag of a module', function()
   local net = nn.Sequential():add(nn.BatchNormalization(2))
   net:training()
   return function(x) return net:forward(x:view(2, 1):expand(2, 2) * 1):clone() end, function() net:evaluate() end
end)
fact('a method of one object', function()
   local net = nn.Tanh()
   return function(x) return net:forward(x) * 1 end, function() net.updateOutput = function(self, x) self.output = x * 5 return self.output end end
end)
fact('gradient mode', function()
   local C = require 'relume.core'
   return function(x) return C.gradEnabled() and x + 1 or x + 2 end, function() C.setGradEnabled(false) end, function() C.setGradEnabled(true) end
end)
fact('the default type', function()
   return function() return torch.ones(2) end, function() torch.setdefaulttensortype 'torch.FloatTensor' end,
      function() torch.setdefaulttensortype 'torch.DoubleTensor' end
end)
fact('the type of a tensor', function()
   local w = torch.ones(2)
   return function() return w * 2 end, function() w = torch.FloatTensor {1, 2} end
end)
fact('the sizes of a tensor', function()
   local w = torch.ones(2)
   return function() return w * 2 end, function() w = torch.ones(3, 2) end
end)
fact('the strides of a tensor', function()
   local w = torch.range(1, 4):view(2, 2)
   return function() return w * 2 end, function() w = w:t() end
end)
fact('requires-grad of a tensor', function()
   local w = torch.ones(2)
   return function() return w:requiresGrad() and w:detach() * 2 or w * 3 end, function() w:requiresGrad(true) end
end)
fact('which tensors share a storage', function()
   local a, b = torch.ones(2), torch.ones(2)
   return function(x)
      a:copy(x)
      return a + b
   end, function() b = a end
end)
fact('which tables are one', function()
   local a, b = {v = 1}, {v = 1}
   return function(x)
      a.v = a.v
      return rawequal(a, b) and x * 2 or x * 3
   end, function() b = a end
end)

local function same(a, b)
   return torch.type(a) == torch.type(b) and a:nElement() == b:nElement() and (a:double() - b:double()):abs():max() < 1e-9
end

describe('a guard of', function()
   before_each(function() compile.warnings = false end)
   after_each(function()
      compile.warnings = true
      _G.guardspecMode = nil
   end)

   for _, g in ipairs(facts) do
      it(g.name .. ' sees it change, once', function()
         local f, change, restore = g.make()
         local c, x = torch.compile(f), torch.DoubleTensor {3, 4}
         local ok, e = pcall(function()
            for _ = 1, 3 do assert.is_true(same(f(x), c(x))) end
            local before = torch.compiler.stats(c)
            assert.equal(0, before.eager)
            change()
            for _ = 1, 3 do assert.is_true(same(f(x), c(x))) end
            local after = torch.compiler.stats(c)
            assert.equal(before.compiles + 1, after.compiles)
            assert.equal(0, after.eager)
         end)
         if restore then restore() end
         if not ok then error(e, 0) end
      end)
   end
end)

describe('a fact that was not read', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   it('costs nothing when it changes', function()
      local o, unused, Class = {k = 2, name = 'a', list = {1}}, 1, {}
      Class.__index = Class
      local p = setmetatable({v = 3}, Class)
      local net = nn.Tanh()
      local function f(x) return net:forward(x * o.k + p.v) * 1, unused and 1 end
      local c, x = torch.compile(function(y) return (f(y)) end), torch.DoubleTensor {3, 4}
      for _ = 1, 2 do c(x) end
      local compiles = torch.compiler.stats(c).compiles
      o.name, o.list, o.extra, Class.other, p.w = 'b', {1, 2, 3}, print, 7, {}
      _G.guardspecOther = 1
      net.note = 'x'
      for _ = 1, 3 do assert.is_true(same((f(x)), c(x))) end
      _G.guardspecOther = nil
      assert.equal(compiles, torch.compiler.stats(c).compiles)
      c(x:clone(), 'another argument that nobody looks at')
      assert.equal(compiles, torch.compiler.stats(c).compiles)
   end)

   it('may be a number that is stored and never used', function()
      local o = {n = 0}
      local c = torch.compile(function(x, i) o.last = i o.n = o.n + 1 return x * 2 end)
      for i = 1, 6 do c(torch.ones(2), i) end
      assert.equal(1, torch.compiler.stats(c).compiles)
      assert.same({n = 6, last = 6}, o)
   end)
end)

describe('the limit', function()
   -- What torch.compile writes to stderr while a program runs.
   local function stderrOf(text)
      local name = os.tmpname()
      local file = assert(io.open(name, 'w'))
      file:write(('package.path, package.cpath = %q, %q\nrequire "torch"\n%s'):format(package.path, package.cpath, text))
      file:close()
      local pipe = assert(io.popen('luajit ' .. name .. ' 2>&1'))
      local out = pipe:read '*a'
      pipe:close()
      os.remove(name)
      return out
   end

   it('is said once, with the guard that changes, both values and what to do', function()
      local out = stderrOf [[
         local f = torch.compile(function(x, name) return x + #name end)
         for i = 1, 12 do assert(f(torch.ones(1), ('x'):rep(i))[1] == 1 + i) end ]]
      local _, lines = out:gsub('\n', '')
      assert.equal(1, lines, out)
      assert.truthy(out:find('was compiled 8 times and runs eagerly now', 1, true), out)
      assert.truthy(out:find('name == ', 1, true), out)
      assert.truthy(out:find('was "x', 1, true), out)
      assert.truthy(out:find('compile one function per value', 1, true), out)
   end)

   it('is the only thing that is said', function()
      assert.equal('', stderrOf [[
         local f = torch.compile(function(x, k) if x:sum() > k then return x * 2 end return x end)
         for i = 1, 5 do f(torch.ones(i), i % 2) end ]])
   end)
end)
