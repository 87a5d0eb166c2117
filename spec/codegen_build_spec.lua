-- Building generated code: cache on disk, corrupt entries, plans at a glance.
local C = require 'relume.core'
local plan = require 'support.plan'

local function graph(k) return plan.graph(function(x) return torch.exp(x * k) + k end, { torch.randn(33) }) end

describe('built plans', function()
   it('come from the cache the second time', function()
      local k = os.time() % 100000 + 0.125
      assert.is_false(graph(k):compile():info().fromCache)
      assert.is_true(graph(k):compile():info().fromCache)
      assert.is_true(graph(k):compile{ strict = true }:info().fromCache) -- strict changes the code of half types alone
   end)
   it('tell what they launch', function()
      local p = graph(2):compile()
      local info = p:info()
      assert.equal(1, info.kernels)
      assert.equal(0, info.calls)
      assert.equal(1, info.inputs)
      assert.equal(1, info.outputs)
      assert.truthy(p:describe():find('kernel mul,exp,add', 1, true))
      assert.truthy(p:source():find('rl_exp_f64', 1, true))
   end)
   it('refuse what is no tensor', function()
      local p = graph(2):compile()
      assert.has_error(function() p:run({ 3 }, {}) end)
      assert.has_error(function() p:call() end)
   end)
   it('fast call gives what run gives', function()
      local p = plan.graph(function(x, lr) return x * lr end, { torch.randn(5) }, { 2 }):compile()
      local x = torch.randn(5)
      assert.equal(0, plan.difference(p:run({ x }, { 3 }), p:call(x, 3)))
   end)
   it('parse from text', function()
      local g = C.graphParse [[
graph functional primitive {
  %0 = input 0 : Float[4,3] of 12
  %1 = neg(%0) : Float[4,3]
  %2 = sum(%1) {dims=[1], keepdim=true} : Float[4,1]
  output %2
}
]]
      local x = torch.randn(4, 3):float()
      assert.is_true(plan.difference((g:compile():run({ x }, {})), x:sum(2):mul(-1)) < 1e-6)
   end)
   it('survive damaged cache files', function()
      local dir = os.tmpname()
      os.remove(dir)
      local program = ([[package.path, package.cpath = %q, %q
         require 'torch'
         local plan = require 'support.plan'
         local p = plan.graph(function(x) return torch.exp(x * 7) end, { torch.randn(33) }):compile()
         print(p:info().fromCache, p:run({ torch.randn(33) }, {}):nElement())]]):format(package.path, package.cpath)
      local function run()
         local name = os.tmpname()
         local f = assert(io.open(name, 'w'))
         f:write(program)
         f:close()
         local p = io.popen(('RELUME_CACHE=%s luajit %s 2>&1'):format(dir, name))
         local out = p:read('*a')
         p:close()
         os.remove(name)
         return (out:gsub('%s+', ' '))
      end
      assert.equal('false 33 ', run())
      assert.equal('true 33 ', run())
      local p = io.popen('ls ' .. dir .. '/v1/*.so')
      local built = p:read('*l')
      p:close()
      local function damage(bytes)
         local f = assert(io.open(built, 'wb'))
         f:write(bytes)
         f:close()
      end
      damage 'not a library'
      assert.equal('false 33 ', run())
      local f = assert(io.open(built, 'rb'))
      local whole = f:read('*a')
      f:close()
      for _, part in ipairs { 0, 100, 3000, math.floor(#whole / 2), #whole - 1 } do
         damage(whole:sub(1, part))
         assert.equal('false 33 ', run(), part .. ' bytes')
      end
      assert.equal('true 33 ', run())
      os.execute('rm -r ' .. dir)
   end)
   it('take long chains of numbers on a small stack', function()
      if (os.getenv 'BUILD' or ''):find 'asan' then return end -- the program is an interpreter of its own
      local name = os.tmpname()
      local f = assert(io.open(name, 'w'))
      f:write(([[package.path, package.cpath = %q, %q
         require 'torch'
         local f = torch.compile(function(x) for _ = 1, 2000 do x = x + 1 end return x end)
         print(f(torch.ones(1))[1])]]):format(package.path, package.cpath))
      f:close()
      local p = io.popen(('ulimit -s 300; luajit %s 2>/dev/null'):format(name)) -- the C compiler may need more; then it runs eagerly
      assert.equal('2001\n', p:read '*a')
      p:close()
      os.remove(name)
   end)
   it('cuts many kernels into units that are compiled at once', function()
      local w = torch.randn(8, 8):mul(0.3)
      local info = plan.check(function(x, m)
         for i = 1, 60 do x = torch.tanh(torch.mm(x, m) * (1 + i / 100)) + torch.sigmoid(x) end
         return x
      end, { torch.randn(4, 8), w }, nil, 1e-12)
      assert.equal(60, info.kernels)
   end)
end)
