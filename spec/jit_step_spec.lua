-- Whole training steps: zero, forward, loss, backward and update are one graph, with eager's losses, parameters and buffers.

-- luacheck: globals jitspec
local function models(kind)
   if kind == 'conv' then
      return nn.Sequential():add(nn.SpatialConvolution(1, 3, 3, 3)):add(nn.SpatialBatchNormalization(3)):add(nn.ReLU())
         :add(nn.SpatialMaxPooling(2, 2)):add(nn.View(27)):add(nn.Linear(27, 12)):add(nn.ReLU()):add(nn.Dropout(0.3))
         :add(nn.Linear(12, 4)):add(nn.LogSoftMax())
   elseif kind == 'branches' then
      return nn.Sequential():add(nn.Reshape(64)):add(nn.ConcatTable():add(nn.Linear(64, 8))
         :add(nn.Sequential():add(nn.Linear(64, 8)):add(nn.Tanh()))):add(nn.CAddTable()):add(nn.Linear(8, 4)):add(nn.LogSoftMax())
   end
   return nn.Sequential():add(nn.View(64)):add(nn.Linear(64, 16)):add(nn.Sigmoid()):add(nn.Linear(16, 4)):add(nn.LogSoftMax())
end

local function make(kind, method, config)
   torch.manualSeed(1)
   local net, criterion = models(kind), nn.ClassNLLCriterion()
   local params, grads = net:getParameters()
   local state = {}
   for k, v in pairs(config) do state[k] = v end
   local function step(x, y)
      local function feval()
         grads:zero()
         local out = net:forward(x)
         local loss = criterion:forward(out, y)
         net:backward(x, criterion:backward(out, y))
         return loss, grads
      end
      local _, losses = optim[method](feval, params, state)
      return losses[1]
   end
   return {step = step, net = net, params = params, state = state, criterion = criterion}
end

local function batch(n)
   torch.manualSeed(n)
   return torch.randn(n, 1, 8, 8), torch.rand(n):mul(4):floor():add(1)
end

local function compare(a, b, f, x, y, seed)
   torch.manualSeed(seed)
   local want = a.step(x, y)
   torch.manualSeed(seed)
   local got = f(x, y)
   assert.equal('number', type(got))
   assert.near(want, got, 1e-4 * math.max(1, math.abs(want)))
   assert.is_true((a.net.output - b.net.output):abs():max() < 1e-3)
   assert.is_true((a.net.gradInput - b.net.gradInput):abs():max() < 1e-3)
   assert.near(a.criterion.output, b.criterion.output, 1e-4)
end

describe('a training step', function()
   before_each(function() torch.setdefaulttensortype 'torch.FloatTensor' end)
   after_each(function() torch.setdefaulttensortype 'torch.DoubleTensor' end)

   for _, case in ipairs {
      {'conv', 'sgd', {learningRate = 0.05, momentum = 0.9, dampening = 0, weightDecay = 1e-3}},
      {'conv', 'rmsprop', {learningRate = 1e-3}},
      {'branches', 'adam', {learningRate = 1e-3}},
      {'plain', 'sgd', {learningRate = 0.1, learningRateDecay = 0.1, momentum = 0.5, nesterov = false}},
   } do
      it(('of %s with %s is one graph'):format(case[1], case[2]), function()
         local a, b = make(unpack(case)), make(unpack(case))
         local f = torch.compile(b.step)
         local x, y = batch(4)
         for seed = 1, 4 do compare(a, b, f, x, y, seed) end
         assert.compiles(f, {graphs = 1, breaks = 0}, x, y)
         local s = torch.compiler.stats(f)
         assert.equal(0, s.eager)
         assert.is_true(s.compiles <= 3, 'compiles ' .. s.compiles)
      end)
   end

   it('follows learning rate, batch size and evaluation mode without many compiles', function()
      local a, b = make('plain', 'sgd', {learningRate = 0.1, momentum = 0.9}), make('plain', 'sgd', {learningRate = 0.1, momentum = 0.9})
      local f = torch.compile(b.step)
      for i = 1, 8 do
         a.state.learningRate, b.state.learningRate = 0.1 / i, 0.1 / i
         local x, y = batch(i % 4 == 0 and 2 or 4)
         compare(a, b, f, x, y, i)
         if i == 5 then a.net:evaluate() b.net:evaluate() end
      end
      assert.equal(a.state.evalCounter, b.state.evalCounter)
      assert.equal(0, torch.compiler.stats(f).eager)
      assert.is_true(torch.compiler.stats(f).compiles <= 4)
   end)

   it('of a deep network passes many tensors and results', function()
      local function build()
         torch.manualSeed(2)
         local net = nn.Sequential()
         for _ = 1, 55 do net:add(nn.Linear(3, 3)):add(nn.Tanh()) end
         local criterion = nn.MSECriterion()
         return function(x, t)
            net:zeroGradParameters()
            local loss = criterion:forward(net:forward(x), t)
            net:backward(x, criterion:backward(net.output, t))
            net:updateParameters(0.1)
            return loss
         end, net
      end
      local step, a = build()
      local raw, b = build()
      local f, x, t = torch.compile(raw), torch.randn(2, 3), torch.randn(2, 3)
      for _ = 1, 3 do assert.near(step(x, t), f(x, t), 1e-4) end
      for i = 1, 109, 2 do
         assert.is_true((a.modules[i].weight - b.modules[i].weight):abs():max() < 1e-4)
         assert.is_true((a.modules[i].output - b.modules[i].output):abs():max() < 1e-4)
      end
      assert.compiles(f, {graphs = 1, breaks = 0}, x, t)
   end)

   it('sees a method that is replaced on one object', function()
      local net = nn.Sequential():add(nn.Linear(3, 2))
      local f = torch.compile(function(x) return net:forward(x):sum() end)
      local x = torch.ones(1, 3)
      assert.near(net:forward(x):sum(), f(x), 1e-5)
      net.modules[1].updateOutput = function(self, input)
         self.output:resize(1, 2):fill(input:sum())
         return self.output
      end
      assert.equal(6, f(x))
   end)

   it('evaluates modules whose gradients are written by hand', function()
      local Twice = torch.class('jitspec.Twice', 'nn.Module')
      function Twice:updateOutput(input) self.output:resizeAs(input):copy(input):mul(2) return self.output end
      function Twice:updateGradInput(_, g) self.gradInput:resizeAs(g):copy(g):mul(2) return self.gradInput end
      local function build()
         torch.manualSeed(3)
         return nn.Sequential():add(nn.Linear(3, 3)):add(jitspec.Twice()):add(nn.Linear(3, 1)), nn.MSECriterion()
      end
      local function stepOf(net, criterion)
         return function(x, t)
            net:zeroGradParameters()
            local loss = criterion:forward(net:forward(x), t)
            net:backward(x, criterion:backward(net.output, t))
            net:updateParameters(0.1)
            return loss
         end
      end
      local step, f = stepOf(build()), torch.compile(stepOf(build()))
      local x, t = torch.randn(5, 3), torch.randn(5, 1)
      for _ = 1, 4 do assert.near(step(x, t), f(x, t), 1e-4) end
      assert.compiles(f, {graphs = 1}, x, t)
   end)

   it('compiles a module in place', function()
      local function build() torch.manualSeed(5) return nn.Sequential():add(nn.Linear(4, 4)):add(nn.Tanh()):add(nn.Linear(4, 2)) end
      local a, b = build(), build()
      local fields = 0
      for _ in pairs(b) do fields = fields + 1 end
      assert.is_true(rawequal(b, torch.compile(b)))
      local x, g = torch.randn(3, 4), torch.randn(3, 2)
      for _ = 1, 3 do
         for _, net in ipairs {a, b} do
            net:zeroGradParameters()
            net:forward(x)
            net:backward(x, g)
            net:updateParameters(0.1)
         end
         assert.is_true((a.output - b.output):abs():max() < 1e-5)
         assert.is_true((a.gradInput - b.gradInput):abs():max() < 1e-5)
         assert.is_true((a.modules[1].weight - b.modules[1].weight):abs():max() < 1e-5)
      end
      for _ in pairs(b) do fields = fields - 1 end
      assert.equal(0, fields)
      assert.equal('nn.Sequential', torch.type(b))
      assert.equal(1, torch.explain(b, x).graphs)
   end)

   it('takes a network of a class that was compiled as an argument', function()
      torch.compile(nn.Sequential():add(nn.Linear(4, 2)))
      local a, b = nn.Sequential():add(nn.Linear(4, 3)):add(nn.Tanh()), nn.Sequential():add(nn.Linear(4, 3)):add(nn.Tanh())
      local f = torch.compile(function(net, x)
         net:zeroGradParameters()
         local y = net:forward(x)
         net:backward(x, y)
         return y
      end)
      local x = torch.randn(2, 4)
      for _, net in ipairs {a, b, a, b} do
         local y = f(net, x)
         assert.is_true((y - net:forward(x)):abs():max() < 1e-6)
      end
      assert.equal(0, torch.compiler.stats(f).eager)
      assert.compiles(f, {graphs = 1, breaks = 0}, a, x)
   end)

   -- Large enough that what a run replaces is written where it was (64 KB), many enough that the plan sets them itself.
   local function wide()
      local net = nn.Sequential()
      for _ = 1, 24 do net:add(nn.Linear(128, 128)):add(nn.Tanh()) end
      local x, y, criterion = torch.randn(256, 128), torch.randn(256, 128), nn.MSECriterion()
      local params, grads = net:getParameters()
      local function feval()
         grads:zero()
         local out = net:forward(x)
         local loss = criterion:forward(out, y)
         net:backward(x, criterion:backward(out, y))
         return loss, grads
      end
      return net, function() return optim.sgd(feval, params, { learningRate = 0.1 }) end
   end

   it('writes the outputs of modules where the last ones were, unless somebody else has that memory', function()
      torch.manualSeed(5)
      local a, eager = wide()
      torch.manualSeed(5)
      local b, step = wide()
      local f = torch.compile(step, { fullgraph = true })
      for _ = 1, 3 do eager() f() end
      local kept, storage, copies, place = b:get(3).output:narrow(1, 2, 5), b:get(5).output:storage(), {}, {}
      for i = 1, 10 do place[i] = torch.pointer(b:get(i).output:storage()) end
      copies[1], copies[2] = kept:clone(), storage:totable()
      for _ = 1, 2 do eager() f() end
      for i = 7, 10 do assert.equal(place[i], torch.pointer(b:get(i).output:storage())) end
      assert.are_not.equal(place[3], torch.pointer(b:get(3).output:storage()))
      assert.same(copies[1]:totable(), kept:totable())
      assert.same(copies[2], storage:totable())
      for i = 1, 48 do
         assert.near(a:get(i).output, b:get(i).output, 1e-4)
         assert.near(a:get(i).gradInput, b:get(i).gradInput, 1e-4)
      end
   end)

   it('keeps no inner results with outputs = false', function()
      for _, kind in ipairs { 'conv', 'branches' } do
         local config = { learningRate = 0.05, momentum = 0.9, dampening = 0 }
         local a, b = make(kind, 'sgd', config), make(kind, 'sgd', config)
         local f = torch.compile(b.step, { outputs = false, fullgraph = true })
         for i = 1, 4 do
            local x, y = batch(3)
            torch.manualSeed(i)
            local want = a.step(x, y)
            torch.manualSeed(i)
            assert.near(want, f(x, y), 1e-4)
         end
         assert.near(a.params, b.params, 1e-4)
         local report = torch.explain(f, batch(3))
         assert.equal(0, report.breaks)
         for k = 1, b.net:size() do
            for _, name in ipairs { 'output', 'gradInput' } do
               local list = b.net:get(k)[name]
               for _, t in ipairs(torch.isTensor(list) and { list } or list) do assert.equal(0, t:dim(), kind .. k .. name .. tostring(b.net:get(k))) end
            end
         end
      end
   end)

   it('outputs = false keeps what is returned, and all that a backward outside may read', function()
      local a, b = models(), models()
      b:getParameters():copy(a:getParameters())
      local x, dy = batch(3), torch.randn(3, 4)
      local inner = torch.compile(function()
         b:zeroGradParameters()
         local y = b:forward(x)
         b:backward(x, dy)
         return y, { b:get(2).output }
      end, { outputs = false })
      local forward = torch.compile(function() return b:forward(x) end, { outputs = false })
      for _ = 1, 3 do
         a:zeroGradParameters()
         local want = a:forward(x):clone()
         a:backward(x, dy)
         local _, dw = a:getParameters()
         local y, kept = inner()
         assert.near(want, y, 1e-5)
         assert.near(a:get(2).output, kept[1], 1e-5)
         assert.equal(0, b:get(3).output:dim())
         assert.near(dw, select(2, b:getParameters()), 1e-5)
      end
      for _ = 1, 3 do
         b:zeroGradParameters()
         assert.near(a.output, forward(), 1e-5)
         b:backward(x, dy)
         assert.near(a:get(3).output, b:get(3).output, 1e-5)
         assert.near(select(2, a:getParameters()), select(2, b:getParameters()), 1e-5)
      end
   end)

   it('makes no garbage that the collector would have to be asked for', function()
      local net = nn.Sequential()
      for _ = 1, 2 do net:add(nn.Linear(32, 32)):add(nn.Tanh()) end
      local x, dy = torch.randn(32768, 32), torch.randn(32768, 32)
      local f = torch.compile(function()
         net:forward(x)
         net:backward(x, dy)
      end)
      for _ = 1, 3 do f() end
      collectgarbage()
      collectgarbage()
      local cycles = 0
      local function watch()
         getmetatable(newproxy(true)).__gc = function()
            cycles = cycles + 1
            watch()
         end
      end
      watch()
      for _ = 1, 8 do f() end -- 8 results of several MB each
      assert.equal(0, cycles)
   end)

   it('finds the memory of its last run again, though the arena is larger than all that stays', function()
      local C = require 'relume.core'
      local net = nn.Sequential()
      for _ = 1, 12 do net:add(nn.Linear(64, 64)):add(nn.Tanh()) end
      local x, y, criterion = torch.randn(32768, 64), torch.randn(32768, 64), nn.MSECriterion()
      local params, grads = net:getParameters()
      local f = torch.compile(function()
         return optim.sgd(function()
            grads:zero()
            local out = net:forward(x)
            local loss = criterion:forward(out, y)
            net:backward(x, criterion:backward(out, y))
            return loss, grads
         end, params, { learningRate = 0.1 })
      end, { outputs = false, fullgraph = true })
      for _ = 1, 4 do f() end
      local function missed()
         local m = C.memory()
         return m.allocs - m.hits
      end
      if C.memory().cached > 0 then -- AddressSanitizer's build keeps nothing
         local before = missed()
         for _ = 1, 3 do f() end
         assert.is_true(missed() - before < 3, missed() - before)
      end
   end)
end)

describe('what a small path only sets', function()
   it('is set by the plan, without an object', function()
      local a, b = torch.zeros(3), torch.zeros(3)
      local f = torch.compile(function(x) a:set(x * 2) b:set(x + 1) return x * 3 end)
      for i = 1, 4 do
         local x = torch.Tensor(3):fill(i)
         local y = f(x)
         assert.same({2 * i, i + 1, 3 * i}, {a[1], b[1], y[1]})
      end
      local text = require('relume.jit.compile').states[f].entries[1].text
      assert.is_nil(text:match 'setAll%(')
      assert.equal(1, select(2, text:gsub('local o__%d+ = run%(plan, ', '')))
   end)

   it('stays as it was when an index is out of range, until eager raises', function()
      local function build()
         torch.manualSeed(1)
         local net = nn.Sequential():add(nn.LookupTable(5, 3)):add(nn.Tanh())
         net:evaluate()
         return net
      end
      local a, b = build(), build()
      local f = torch.compile(function(x) return b:forward(x) end)
      for i = 1, 3 do
         local x = torch.LongTensor {1, i}
         assert.is_true((a:forward(x) - f(x)):abs():max() < 1e-15)
      end
      local bad = torch.LongTensor {1, 9}
      local _, want = pcall(a.forward, a, bad)
      local ok, got = pcall(f, bad)
      assert.is_false(ok)
      assert.equal(want:match '%[.*', got:match '%[.*')
      assert.is_true((a.output - b.output):abs():max() < 1e-15)
      local x = torch.LongTensor {2, 3}
      assert.is_true((a:forward(x) - f(x)):abs():max() < 1e-15)
   end)
end)
