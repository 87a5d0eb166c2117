-- Composability: instances of one class share captures, compiled functions call each other, coroutines, clones and files of compiled modules.

local compile = require 'relume.jit.compile'
local modules = require 'relume.jit.module'

local function stats(f) return torch.compiler.stats(f) end
local function near(a, b) return (a - b):abs():max() < 1e-5 end
local function block(n) return nn.Sequential():add(nn.Linear(n or 8, n or 8)):add(nn.Tanh()) end

describe('instances of one class', function()
   before_each(function()
      torch.setdefaulttensortype 'torch.FloatTensor'
      torch.manualSeed(1)
      compile.warnings = false
   end)
   after_each(function()
      torch.setdefaulttensortype 'torch.DoubleTensor'
      compile.warnings = true
   end)

   it('need two captures of a function that gets them, however many they are', function()
      local f = torch.compile(function(b, x) return b:forward(x) end)
      local x = torch.randn(4, 8)
      for _ = 1, 12 do
         local b = block()
         local y = f(b, x):clone()
         assert.is_true(rawequal(f(b, x), b.output))
         assert.is_true(near(b:clone():forward(x), y))
      end
      assert.equal(2, stats(f).compiles)
      assert.equal(0, stats(f).eager)
   end)

   it('need two for twelve blocks of a transformer, and for training steps of blocks', function()
      local f = torch.compile(function(b, x) return b:forward(x) end)
      local x = torch.randn(2, 5, 16)
      local e = x:clone()
      for _ = 1, 12 do
         local b = nn.TransformerBlock(16, 2)
         e = b:clone():forward(e)
         x = f(b, x)
      end
      assert.is_true((x - e):abs():max() < 1e-3)
      assert.equal(2, stats(f).compiles)
      local function step(b, input, target)
         b:zeroGradParameters()
         local out = b:forward(input)
         b:backward(input, out - target)
         b:updateParameters(0.1)
         return out
      end
      local g, input, target = torch.compile(step), torch.randn(4, 8), torch.randn(4, 8)
      for _ = 1, 6 do
         local a = block()
         local b = a:clone()
         for _ = 1, 2 do assert.is_true(near(step(a, input, target):clone(), g(b, input, target))) end
         assert.is_true(near(a.modules[1].weight, b.modules[1].weight))
         assert.is_true(near(a.modules[1].gradWeight, b.modules[1].gradWeight))
      end
      assert.is_true(stats(g).compiles <= 3, 'compiles ' .. stats(g).compiles)
      assert.equal(0, stats(g).eager)
   end)

   it('that are compiled one by one take each other\'s entries', function()
      local blocks, plain, x = {}, {}, torch.randn(4, 8)
      for i = 1, 6 do
         plain[i] = block()
         blocks[i] = torch.compile(plain[i]:clone())
      end
      local captures, taken = 0, 0
      for _ = 1, 2 do
         for i = 1, 6 do assert.is_true(near(plain[i]:forward(x), blocks[i]:forward(x))) end
      end
      for i = 1, 6 do
         local s = stats(modules.forward(blocks[i]))
         captures, taken = captures + s.compiles, taken + s.shared
         assert.equal(1, s.entries)
         assert.equal(0, s.eager)
      end
      assert.is_true(captures <= 2, 'captures ' .. captures) -- fewer where an earlier spec compiled such a block
      assert.equal(6, captures + taken)
      blocks[6].modules[2] = nn.Sigmoid() -- one that changes is captured by itself
      assert.is_true(near(nn.Sigmoid():forward(blocks[6].modules[1]:forward(x)), blocks[6]:forward(x)))
      for i = 1, 5 do assert.is_true(near(plain[i]:forward(x), blocks[i]:forward(x))) end
      assert.equal(1, stats(modules.forward(blocks[6])).compiles)
   end)

   it('keep apart with other options and have a limit each', function()
      local x = torch.randn(2, 8)
      local errors, plain = torch.compile(block(), {onRecompile = 'error'}), torch.compile(block())
      errors:forward(x)
      plain:forward(x)
      assert.equal(1, stats(modules.forward(errors)).compiles)
      assert.equal(1, stats(modules.forward(plain)).compiles)
      for _ = 1, 10 do -- a class made in a loop, compiled with fullgraph
         local Class = {}
         Class.__index = Class
         function Class:forward(input) return input * self.scale end
         local m = torch.compile(setmetatable({scale = 2}, Class), {fullgraph = true})
         assert.is_true(near(x * 2, m:forward(x)))
      end
   end)

   it('see other sizes, fields and modes by themselves', function()
      local a, b = torch.compile(block()), torch.compile(block())
      local x = torch.randn(4, 8)
      for _ = 1, 2 do a:forward(x) b:forward(x) end
      assert.is_true(near(b:clone():forward(torch.ones(3, 8)), b:forward(torch.ones(3, 8))))
      b.modules[1].bias = nil
      local y = torch.mm(x, b.modules[1].weight:t()):tanh()
      assert.is_true(near(y, b:forward(x)))
      assert.is_true(near(a:clone():forward(x), a:forward(x)))
   end)
end)

describe('compiled functions', function()
   it('call each other: the inner one is part of the outer graph', function()
      local inner = torch.compile(function(x, s) return x * s end)
      local middle = torch.compile(function(x) return inner(x, 2) + 1 end)
      local outer = torch.compile(function(x) return middle(inner(x, 3)) end)
      local x = torch.ones(3)
      for _ = 1, 3 do assert.equal(21, outer(x):sum()) end
      assert.compiles(outer, {graphs = 1, breaks = 0}, x)
      assert.equal(0, stats(inner).compiles + stats(middle).compiles)
      assert.equal(6, inner(x, 2):sum())
      assert.equal(1, stats(inner).compiles)
   end)

   it('run in coroutines, each call in its own', function()
      local c = torch.compile(function(x) return x * 2 + 1 end)
      local function worker(x)
         for _ = 1, 3 do
            x = c(x)
            coroutine.yield(x:sum())
         end
      end
      local a, b = coroutine.wrap(worker), coroutine.wrap(worker)
      assert.equal(6, a(torch.ones(2)))
      assert.equal(9, b(torch.ones(3)))
      assert.equal(14, a())
      assert.equal(21, b())
      assert.equal(0, stats(c).eager)
   end)

   it('first called inside a coroutine that yields in the middle', function()
      local c = torch.compile(function(x)
         local y = x + 1
         coroutine.yield(y:sum())
         return y * 2
      end)
      for _ = 1, 3 do
         local co = coroutine.wrap(function() return c(torch.ones(2)) end)
         assert.equal(4, co())
         assert.equal(8, co():sum())
      end
   end)

   it('call themselves', function()
      local f
      f = torch.compile(function(x, n) if n == 0 then return x end return f(x * 2, n - 1) end)
      assert.equal(32, f(torch.ones(1), 5)[1])
      assert.equal(0, stats(f).eager)
   end)
end)

describe('a compiled module', function()
   local function fields(m)
      local list = {}
      for k, v in pairs(m) do list[#list + 1] = k .. ' ' .. torch.type(v) end
      table.sort(list)
      return table.concat(list, ', ')
   end

   it('keeps name, fields, text, file form, clone, type conversion and getParameters', function()
      local a = nn.Sequential():add(nn.Linear(4, 3)):add(nn.Tanh())
      local b, x = a:clone(), torch.randn(2, 4)
      local c = torch.compile(b)
      assert.is_true(rawequal(b, c))
      a:forward(x)
      c:forward(x)
      assert.equal(torch.type(a), torch.type(c))
      assert.equal(tostring(a), tostring(c))
      assert.equal(fields(a), fields(c))
      assert.equal(#torch.serialize(a:clearState()), #torch.serialize(c:clearState())) -- the order of a table's keys is its own
      local copy = torch.deserialize(torch.serialize(c))
      assert.equal(fields(a), fields(copy))
      assert.is_true(near(a:forward(x), copy:forward(x)))
      assert.is_nil(modules.forward(copy))
      assert.is_nil(modules.forward(c:clone()))
      assert.equal(a:getParameters():nElement(), c:getParameters():nElement())
      assert.is_true(near(a:forward(x), c:forward(x)))
      assert.equal('torch.FloatTensor', torch.type(c:float():forward(x:float())))
      assert.is_true(near(a:forward(x):float(), c.output))
      assert.equal(0, stats(modules.forward(c)).eager)
      assert.equal(1, #c:findModules 'nn.Linear')
      c:training()
      c:evaluate()
      assert.is_true(near(a:forward(x):float(), c:forward(x:float())))
   end)

   it('is forgotten with its object', function()
      local weak = setmetatable({}, {__mode = 'v'})
      weak[1] = torch.compile(nn.Sequential():add(nn.Linear(2, 2)))
      weak[1]:forward(torch.ones(1, 2))
      for _ = 1, 4 do collectgarbage() end
      assert.is_nil(weak[1])
   end)
end)
