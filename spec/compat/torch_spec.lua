-- Habits of Torch7 programs that its public suite relies on: scalar forms, results that keep their sizes, files, the Tester.
require 'torch'
local T = torch.Tensor

local function raises(pattern, f)
   local ok, err = pcall(f)
   assert.is_false(ok)
   assert.truthy(tostring(err):find(pattern), err)
end

-- Runs f with what is written to the terminal taken away -> what f returned, text.
local function quietly(f)
   local write, out = io.write, {}
   io.write = function(...) out[#out + 1] = table.concat({...}) end -- luacheck: ignore
   local ok, err = pcall(f)
   io.write = write -- luacheck: ignore
   return ok, table.concat(out), err
end

describe('forms of Torch7', function()
   it('functions of numbers give numbers', function()
      assert.equal(8, torch.pow(2, 3))
      assert.near(math.pi / 4, torch.atan2(1, 1), 1e-12)
      assert.equal(1.5, torch.lerp(1, 2, 0.5))
      assert.equal(3, torch.abs(-3))
      raises('%[atan2%] argument 1; got number, need tensor', function() T{1}.atan2(1, 2) end)
   end)

   it('sequences fill a result of as many elements in its own shape', function()
      local x = torch.zeros(2, 4)
      local y = x:narrow(2, 3, 2)
      y:range(5, 8)
      assert.same({{0, 0, 5, 6}, {0, 0, 7, 8}}, x:totable())
      y:linspace(0, 3, 4)
      assert.same({{0, 0, 0, 1}, {0, 0, 2, 3}}, x:totable())
      y:logspace(0, 3, 4)
      assert.same({{0, 0, 1, 10}, {0, 0, 100, 1000}}, x:totable())
      assert.same({1, 2, 3}, torch.zeros(2, 2):range(1, 3):totable())
      assert.same({{1, 2}, {3, 4}}, torch.IntTensor(2, 2):range(1, 4):totable())
   end)

   it('median goes along the last dimension', function()
      local v, i = torch.median(T{{3, 1, 2}, {9, 8, 7}})
      assert.same({{2}, {8}}, v:totable())
      assert.same({{3}, {2}}, i:totable())
   end)

   it('in place, as many elements are read in order', function()
      assert.same({1, 2, 3}, T{2, 4, 6}:cdiv(T{{2}, {2}, {2}}):totable())
      assert.same({{2}, {4}}, T{{1}, {2}}:add(T{{1, 2}}):totable())
      assert.same({{11, 12}}, T{{10, 10}}:add(1, T{{1}, {2}}):totable())
      local x = T{{1}, {2}}:requiresGrad(true)
      local y = torch.ones(2):mul(2)
      y:cmul(x)
      y:sum():backward()
      assert.same({{2}, {2}}, x:grad():totable())
   end)

   it('select of a vector takes any dimension', function()
      assert.equal(5, T{4, 5}:select(2, 2))
      raises('index out of range', function() T{4, 5}:select(2, 3) end)
      raises('dimension out of range', function() torch.ones(2, 2):select(3, 1) end)
   end)

   it('errors name the function under pcall and in tail calls', function()
      local ok, err = pcall(torch.cmul, 'x', 1)
      assert.is_false(ok)
      assert.truthy(err:find('[cmul] argument 1', 1, true), err)
      ok, err = pcall(function() return torch.ones(2):sum(5) end)
      assert.is_false(ok)
      assert.truthy(err:find('[sum]', 1, true), err)
   end)
end)

describe('files', function()
   it('a generator comes back in its state', function()
      for _, form in ipairs{'binary', 'ascii'} do
         local g = torch.Generator()
         torch.manualSeed(g, 5)
         torch.random(g)
         local h = torch.deserialize(torch.serialize({g, g}, form), form)
         assert.equal(h[1], h[2])
         assert.equal(torch.random(g), torch.random(h[1]))
      end
      raises('fewer elements', function()
         local s = torch.serialize(torch.Generator())
         torch.deserialize(s:sub(1, #s - 4))
      end)
   end)

   it('closures share their variables again', function()
      local n = 0
      local t = torch.deserialize(torch.serialize{up = function() n = n + 1 end, get = function() return n end})
      t.up()
      t.up()
      assert.equal(2, t.get())
      assert.equal(0, n)
   end)

   it('a hook replaces objects, each once', function()
      local file = torch.MemoryFile():binary()
      local inner = {1}
      file:writeObject({a = inner, b = inner, c = 'x'}, nil, function(o) return o == inner and {2} or o end)
      file:seek(1)
      local back = file:readObject()
      assert.same({2}, back.a)
      assert.equal(back.a, back.b)
      assert.equal('x', back.c)
   end)

   it('what cannot be written is named by its path', function()
      local outer = {list = {1, {bad = print}}}
      raises('at <%?>%.list%[2%]%.bad%)', function() torch.serialize(outer) end)
      local function f() return outer end
      raises('at <%?>%.outer%.list%[2%]%.bad%)', function() torch.serialize(f) end)
      local file = torch.MemoryFile():binary()
      raises('at <net>%.list', function() file:writeObject(outer, 'net') end)
      file:writeObject({1})
   end)

   it('shared memory by name lives as long as its storage', function()
      local name = ('relume_spec_%d'):format(math.random(1e9))
      local s = torch.IntStorage(name, true, 4, true)
      s:fill(3)
      local file = io.open('/dev/shm/' .. name)
      if file then -- where the system shows shared memory as files
         file:close()
         assert.same({3, 3, 3, 3}, torch.IntStorage('/dev/shm/' .. name, true, 4):totable())
         s = nil -- luacheck: ignore
         collectgarbage()
         collectgarbage()
         assert.is_nil(io.open('/dev/shm/' .. name))
      end
      raises('%[storage%]', function() torch.IntStorage(name, true, 0, true) end)
   end)
end)

describe('Tester of Torch7', function()
   it('takes tolerance and message in either order', function()
      local t = torch.Tester()
      assert.is_true(t:eq(1, 1.05, 0.1, 'm'))
      assert.is_true(t:eq(1, 1.05, 'm', 0.1))
      assert.is_true(t:eq({T{1}, 'a'}, {T{1}, 'a'}))
      assert.is_false((t:eq(T{1}, torch.FloatTensor{1})))
      assert.is_true(t:ne(T{1}, T{{1}}))
      assert.is_true(t:assertTensorEq(T{1}, T{{1}}))
      assert.is_true(t:eq(T{1 / 0}, T{1 / 0}))
      assert.is_false((t:eq(T{0 / 0}, T{0 / 0})))
      raises('Unexpected arguments', function() t:assert(true, 'a', 'b') end)
      raises('should be a Tensor', function() t:assertTensorEq(T{1}, 2) end)
   end)

   it('reports for a class that overrides _run, as totem does', function()
      local Own, parent = torch.class('spec.OwnTester', 'torch.Tester', {})
      function Own:_run(names) parent._run(self, names) end
      local t = torch.factory 'spec.OwnTester'()
      t:__init()
      t:add(function() t:assert(true) end, 'a')
      local ok, text = quietly(function() t:run() end)
      assert.is_true(ok)
      assert.truthy(text:find('Completed 1 assert in 1 test with 0 failures', 1, true))
   end)

   it('runs, skips, matches and stops', function()
      local t, suite, ran = torch.Tester(), torch.TestSuite(), {}
      function suite.one() ran[#ran + 1] = 'one' end
      function suite.two() ran[#ran + 1] = 'two' end
      function suite._setUp(name) ran[#ran + 1] = 'up ' .. name end
      t:add(suite):disable('two')
      local _, text = quietly(function() t:run() end)
      assert.same({'up one', 'one'}, ran)
      assert.truthy(text:find('%[SKIP%]'))
      ran = {}
      quietly(function() t:run('^o') end)
      assert.same({'up one', 'one'}, ran)
      raises('Only one _setUp', function() t:add(print, '_setUp') end)
      raises('Nested sets', function() torch.Tester():add{{print}} end)
      local bad = torch.Tester()
      bad:add(function() error('oh') end, 'a'):add(function() ran = nil end, 'b'):setEarlyAbort(true)
      local ok = quietly(function() bad:run() end)
      assert.is_false(ok)
      assert.is_table(ran)
      bad:setRethrowErrors(true)
      local _, _, err = quietly(function() bad:run() end)
      assert.truthy(err:find('oh'))
   end)
end)
