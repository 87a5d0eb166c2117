-- Compiled modules with Torch7's separate forward and backward: each is a plan, backward reads what forward saved; outputs, gradients, buffers and
-- random numbers are eager's.

local compile = require 'relume.jit.compile'
local modules = require 'relume.jit.module'

local function conv()
   return nn.Sequential():add(nn.SpatialConvolution(1, 3, 3, 3)):add(nn.SpatialBatchNormalization(3)):add(nn.ReLU(true))
      :add(nn.SpatialMaxPooling(2, 2)):add(nn.View(-1, 27)):add(nn.Linear(27, 5)):add(nn.LogSoftMax()), {4, 1, 8, 8}, {4, 5}
end
local function dropout()
   return nn.Sequential():add(nn.Linear(6, 8)):add(nn.BatchNormalization(8)):add(nn.Tanh()):add(nn.Dropout(0.4)):add(nn.Linear(8, 5)), {4, 6}, {4, 5}
end
local function tables()
   return nn.Sequential():add(nn.ConcatTable():add(nn.Linear(6, 5)):add(nn.Sequential():add(nn.Linear(6, 5)):add(nn.Sigmoid())):add(nn.Linear(6, 5)))
      :add(nn.ParallelTable():add(nn.Identity()):add(nn.Dropout(0.3)):add(nn.Tanh())):add(nn.CAddTable()), {4, 6}, {4, 5}
end
local function lone() return nn.Linear(6, 5), {4, 6}, {4, 5} end

local function pair(make)
   torch.manualSeed(1)
   local a, sx, sy = make()
   torch.manualSeed(1)
   local b = torch.compile((make()))
   a:zeroGradParameters()
   b:zeroGradParameters()
   return a, b, torch.randn(unpack(sx)), torch.randn(unpack(sy))
end

-- All tensors of two networks are the same.
local function equal(a, b, path, seen)
   seen = seen or {}
   if seen[a] then return end
   seen[a] = true
   for k, v in pairs(a) do
      local w, where = b[k], (path or 'net') .. '.' .. tostring(k)
      if torch.isTensor(v) then
         assert.is_true(v:nElement() == w:nElement() and (v:nElement() == 0 or (v:double() - w:double()):abs():max() < 1e-9), where)
      elseif type(v) == 'table' then equal(v, w, where, seen)
      elseif type(v) ~= 'function' and type(v) ~= 'userdata' then assert.equal(v, w, where) end
   end
end

local function stats(net, name)
   local s = torch.compiler.stats(modules.compiled[net][name])
   local state = compile.states[modules.compiled[net][name]]
   assert.equal(0, s.eager, state.breaks[1] and tostring(state.breaks[1]))
   return s
end

-- name -> steps of a network with data x, the gradient dy, in step i.
local uses = {
   ['forward and backward'] = function(n, x, dy) n:zeroGradParameters() n:forward(x) n:backward(x, dy) n:updateParameters(0.1) end,
   ['gradients accumulated, with scale'] = function(n, x, dy, i) n:forward(x) n:backward(x, dy, 0.5 * i) end,
   ['updateGradInput alone'] = function(n, x, dy) n:forward(x) n:updateGradInput(x, dy) end,
   ['updateGradInput and accGradParameters'] = function(n, x, dy)
      n:zeroGradParameters() n:forward(x) n:updateGradInput(x, dy) n:accGradParameters(x, dy, 2)
   end,
   ['forward twice, backward of the last'] = function(n, x, dy) n:forward(x * 2) n:forward(x) n:backward(x, dy) end,
   ['backward twice'] = function(n, x, dy) n:forward(x) n:backward(x, dy) n:updateGradInput(x, dy * 2) end,
   ['evaluate mode in between'] = function(n, x, dy, i)
      n:training() n:forward(x) n:backward(x, dy) n:evaluate() n:forward(x * i)
   end,
   ['backward in evaluate mode'] = function(n, x, dy) n:evaluate() n:forward(x) n:backward(x, dy) end,
   ['random numbers between'] = function(n, x, dy) n:forward(x) torch.rand(7) n:backward(x, dy) torch.rand(1) end,
   ['a criterion outside'] = function(n, x, dy)
      local criterion = nn.MSECriterion()
      criterion:forward(n:forward(x), dy)
      n:backward(x, criterion:backward(n.output, dy))
   end,
}

describe('a compiled module', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   for kind, make in pairs {conv = conv, dropout = dropout, tables = tables, lone = lone} do
      for name, use in pairs(uses) do
         it(('(%s) agrees with eager: %s'):format(kind, name), function()
            local a, b, x, dy = pair(make)
            for i = 1, 3 do
               for _, net in ipairs {a, b} do
                  torch.manualSeed(i)
                  use(net, x, dy, i)
                  net.drawn = torch.rand(2)
               end
               equal(a, b)
            end
            assert.is_true(stats(b, 'forward').compiles <= 3)
         end)
      end
   end

   it('has a backward of one plan that does not run forward again', function()
      local a, b, x, dy = pair(conv)
      for _, net in ipairs {a, b} do net:forward(x) net:backward(x, dy) end
      equal(a, b)
      for _, name in ipairs {'forward', 'backward'} do assert.equal(1, stats(b, name).compiles) end
      local ops = compile.states[modules.compiled[b].backward].entries[1].ops
      assert.is_nil(ops.conv2d)
      assert.is_nil(ops.batch_norm)
      assert.is_nil(ops.log_softmax)
   end)

   it('op by op rounds as eager does, also in a gradient that is 0 but for rounding', function()
      local function build()
         torch.manualSeed(1)
         local net = nn.Sequential():add(nn.Linear(3, 4)):add(nn.BatchNormalization(4)):add(nn.Tanh()):add(nn.Linear(4, 2))
         net:zeroGradParameters()
         return net
      end
      local a, b = build(), build()
      local function step(net, x, dy) net:forward(x) return net:backward(x, dy) end
      local x, dy = torch.randn(5, 3), torch.randn(5, 2)
      local want, got = step(a, x, dy), torch.compile(step, {backend = 'eager'})(b, x, dy)
      assert.equal(0, (want - got):abs():max())
      for i = 1, 4, 3 do
         assert.equal(0, (a.modules[i].gradBias - b.modules[i].gradBias):abs():max())
         assert.equal(0, (a.modules[i].gradWeight - b.modules[i].gradWeight):abs():max())
      end
   end)

   it('gives inner modules and its own updateGradInput what they need', function()
      local a, b, x, dy = pair(dropout)
      for i = 1, 3 do
         for _, net in ipairs {a, b} do
            torch.manualSeed(i)
            net:forward(x)
            net.modules[5]:backward(net.modules[4].output, dy)
            net.modules[4]:backward(net.modules[3].output, net.modules[5].gradInput)
         end
         equal(a, b)
      end
   end)

   it('goes with an eager forward, and with an eager backward', function()
      for _, part in ipairs {'forward', 'backward'} do
         local a, b, x, dy = pair(dropout)
         modules.compiled[b][part] = nil
         for i = 1, 3 do
            for _, net in ipairs {a, b} do
               torch.manualSeed(i)
               net:forward(x)
               net:backward(x, dy)
            end
            equal(a, b)
         end
      end
   end)

   it('takes other data, other sizes and other modes', function()
      local a, b = pair(dropout)
      for i = 1, 6 do
         local x, dy = torch.randn(i + 1, 6), torch.randn(i + 1, 5)
         for _, net in ipairs {a, b} do
            torch.manualSeed(i)
            if i % 3 == 0 then net:evaluate() else net:training() end
            net:zeroGradParameters()
            net:forward(x)
            net:backward(x, dy)
            net:updateParameters(0.1)
         end
         equal(a, b)
      end
   end)

   it('of a network whose parameters are one vector', function()
      local a, b, x, dy = pair(conv)
      local pa, ga = a:getParameters()
      local pb, gb = b:getParameters()
      for _ = 1, 3 do
         for _, n in ipairs {{a, pa, ga}, {b, pb, gb}} do
            n[3]:zero()
            n[1]:forward(x)
            n[1]:backward(x, dy)
            n[2]:add(-0.1, n[3])
         end
         equal(a, b)
         assert.is_true((pa - pb):abs():max() < 1e-9)
      end
      assert.is_true(stats(b, 'backward').compiles <= 2)
   end)

   it('is freed with its data', function()
      local C = require 'relume.core'
      local _, b, x, dy = pair(conv)
      b:forward(x)
      b:backward(x, dy)
      local weak = setmetatable({b}, {__mode = 'v'})
      b = nil -- luacheck: ignore
      for _ = 1, 3 do collectgarbage() end
      assert.is_nil(weak[1])
      assert.is_number(C.memory().live)
   end)
end)

describe('a forward in one compiled function and its backward in another', function()
   it('share what forward saved', function()
      local function build() torch.manualSeed(2) return (dropout()) end
      local a, b = build(), build()
      a:zeroGradParameters()
      b:zeroGradParameters()
      local forward = torch.compile(function(net, x) return net:forward(x) end)
      local backward = torch.compile(function(net, x, dy) return net:backward(x, dy) end)
      for i = 1, 3 do
         local x, dy = torch.randn(4, 6), torch.randn(4, 5)
         torch.manualSeed(i)
         a:forward(x)
         a:backward(x, dy)
         torch.manualSeed(i)
         forward(b, x)
         backward(b, x, dy)
         equal(a, b)
      end
      assert.equal(0, torch.compiler.stats(forward).eager + torch.compiler.stats(backward).eager)
   end)

   it('leave one object a call, whatever the number of modules', function()
      local net, dy = nn.Sequential():float(), torch.FloatTensor(4, 6):fill(1)
      for _ = 1, 20 do net:add(nn.Linear(6, 6):float()):add(nn.Tanh():float()) end
      local forward, x = torch.compile(function(x) net:forward(x) end), torch.FloatTensor(4, 6):uniform()
      for _ = 1, 3 do forward(x) end
      local text = compile.states[forward].entries[1].text
      assert.is_nil((text:match 'rawset%(K%[%d+%], K%[%d+%], {'))
      assert.is_nil(text:match 'setAll%(', 'the plan sets the outputs of small networks too')
      assert.equal(40, select(2, text:gsub('rawset%(K%[%d+%], K%[%d+%], o__%d+%)', '')))
      local want = net:clone()
      want:forward(x)
      want:zeroGradParameters()
      net:zeroGradParameters()
      assert.is_true((want:backward(x, dy) - net:backward(x, dy)):abs():max() < 1e-6)
      assert.is_true((want:get(3).gradWeight - net:get(3).gradWeight):abs():max() < 1e-6)
   end)

   it('hold nothing of an earlier call of another size', function()
      local C = require 'relume.core'
      local net = nn.Sequential():add(nn.Linear(10, 1000)):add(nn.Tanh()):add(nn.Linear(1000, 1))
      local forward = torch.compile(function(x) net:forward(x) end, {dynamic = false})
      local function live()
         for _ = 1, 4 do collectgarbage() end
         return C.memory().live
      end
      forward(torch.randn(2, 10))
      forward(torch.randn(500, 10))
      local with = live()
      forward(torch.randn(2, 10))
      assert.is_true(with - live() > 6e6, with - live() .. ' bytes') -- two matrices of 500 x 1000
      assert.equal(2, torch.compiler.stats(forward).compiles)
   end)

   it('keep what each of several networks needs that take turns in one compiled forward', function()
      local function build(i) torch.manualSeed(i) return (dropout()) end
      local backward = torch.compile(function(net, x, dy) return net:backward(x, dy) end)
      for _, back in ipairs {function(net, x, dy) return net:backward(x, dy) end, backward} do
         local forward = torch.compile(function(net, x) return net:forward(x) end)
         local nets, want = {build(1), build(2), build(3)}, {build(1), build(2), build(3)}
         for i = 1, 4 do
            local x, dy = torch.randn(4, 6), torch.randn(4, 5)
            for _, pass in ipairs {{want, function(net) return net:forward(x) end}, {nets, function(net) return forward(net, x) end}} do
               torch.manualSeed(i)
               for k = 1, 3 do pass[2](pass[1][k]) end
            end
            for k = 1, 3 do
               for _, net in ipairs {want[k], nets[k]} do net:zeroGradParameters() end
               want[k]:backward(x, dy)
               back(nets[k], x, dy)
               equal(want[k], nets[k])
            end
         end
         assert.equal(0, torch.compiler.stats(forward).eager)
      end
   end)

   it('leave what lookups and criterions were given', function()
      local function build()
         torch.manualSeed(3)
         return nn.Sequential():add(nn.LookupTable(7, 5)):add(nn.Dropout(0.3)):add(nn.Mean(2)):add(nn.Linear(5, 4)):add(nn.LogSoftMax()),
            nn.ClassNLLCriterion()
      end
      local nets, losses = {}, {}
      for i = 1, 2 do nets[i], losses[i] = build() end
      local forward = torch.compile(function(net, loss, x, y) return loss:forward(net:forward(x), y) end)
      for i = 1, 3 do
         local x, y, got = torch.LongTensor(4, 3):random(7), torch.LongTensor(4):random(4), {}
         for k, f in ipairs {function(net, loss) return loss:forward(net:forward(x), y) end, forward} do
            local net, loss = nets[k], losses[k]
            torch.manualSeed(i)
            net:zeroGradParameters()
            got[k] = f(net, loss, x, y)
            net:backward(x, loss:backward(net.output, y))
         end
         assert.is_true(math.abs(got[1] - got[2]) < 1e-12)
         equal(nets[1], nets[2])
      end
      assert.has_error(function() forward(nets[2], losses[2], torch.LongTensor(4, 3):fill(9), torch.LongTensor(4):fill(1)) end)
      assert.equal(0, torch.compiler.stats(forward).breaks or 0)
   end)

   it('still fit when a compiled step had the backward as well (a network that judges twice)', function()
      local function build() torch.manualSeed(2) return (dropout()) end
      local a, b = build(), build()
      local function step(net, x, dy)
         net:zeroGradParameters()
         net:forward(x)
         net:backward(x, dy)
      end
      local f, g = torch.compile(step), torch.compile(function(net, x, dy) return net:updateGradInput(x, dy) end)
      for i = 1, 3 do
         local x, dy = torch.randn(4, 6), torch.randn(4, 5)
         for _, n in ipairs {{a, step, a.updateGradInput}, {b, f, i < 3 and g or b.updateGradInput}} do
            torch.manualSeed(i)
            n[2](n[1], x, dy)
            n[3](n[1], x, dy * 3)
         end
         equal(a, b)
      end
   end)
end)

describe('a backward behind a compiled forward', function()
   -- as eager, for each backend, with what the real VM does in between
   local function check(layers, between)
      for _, backend in ipairs {'c', 'eager'} do
         local want
         for _, wrap in ipairs {function(f) return f end, function(f) return torch.compile(f, {backend = backend}) end} do
            torch.manualSeed(3)
            local net = nn.Sequential()
            for _, layer in ipairs(layers()) do net:add(layer) end
            local x = torch.randn(5, 4)
            local params, grads = net:getParameters()
            grads:zero()
            local step = wrap(function(a, b) return between(net, a, b) end)
            for k = 1, 2 do
               local out = step(x, x * k)
               net:backward(x * k, torch.tanh(out))
            end
            local got = {grads:clone(), params:clone(), net.gradInput:clone()}
            if want then assert.near(got, want, 1e-12) end
            want = want or got
         end
      end
   end

   it('reads the first of several results of an op and the others', function()
      check(function() return {nn.Linear(4, 3), nn.Tanh(), nn.BatchNormalization(3), nn.Linear(3, 2)} end, function(net, _, b) return net:forward(b):clone() end)
   end)

   it('keeps statistics where nothing random is drawn', function()
      local backward = torch.compiler.disable(function(loss) loss:backward() end)
      check(function() return {nn.Linear(4, 3), nn.BatchNormalization(3), nn.Tanh()} end, function(net, a, b)
         local out = net:forward(a):clone()
         net:backward(b, out)
         local g = a:clone():requiresGrad(true)
         backward(torch.tanh(g * 2):sum())
         assert.near(g:grad(), torch.pow(torch.tanh(a * 2), 2):mul(-2):add(2))
         return net:forward(b):clone()
      end)
   end)

   it('knows what forward read, also when that has changed', function()
      check(function() return {nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)} end, function(net, a, b)
         local input = a * 2
         local out = net:forward(input)
         local later = function() net:backward(input, out) end
         a:map(b, function(x, y) return x + y end) -- a break; eager's tape does not read a
         later()
         return net:forward(b):clone()
      end)
   end)

   it('reads the weights of now, but a bias as it was', function()
      -- a compiled backward computes the wide tanh again from narrow values, of which the bias is one; eager's tape holds its result
      local Layer, parent = torch.class('jitFound.Layer', 'nn.Module') -- luacheck: ignore
      function Layer:__init()
         parent.__init(self)
         self.weight, self.bias = torch.randn(3, 40), torch.randn(40)
         self.gradWeight, self.gradBias = torch.zeros(3, 40), torch.zeros(40)
      end
      function Layer.compute(_, x, w, b)
         local n, m = x:size(1), b:size(1)
         return torch.mm(torch.tanh(x:sum(2):expand(n, m) + b:view(1, -1):expand(n, m)), w:t())
      end
      for _, backend in ipairs {'c', 'eager'} do
         local want
         for _, wrap in ipairs {function(f) return f end, function(f) return torch.compile(f, {backend = backend}) end} do
            torch.manualSeed(1)
            local layer, x = jitFound.Layer(), torch.randn(5, 4) -- luacheck: ignore
            wrap(function() return layer:forward(x) end)()
            layer.weight:add(0.5)
            layer.bias:add(0.5)
            layer:backward(x, torch.ones(5, 3))
            local got = {layer.gradInput, layer.gradWeight, layer.gradBias}
            if want then assert.near(got, want, 1e-12) end
            want = want or got
         end
      end
   end)

   it('reads memory around a window only while it is there', function()
      local backward = torch.compiler.disable(function(loss) loss:backward() end)
      for _, backend in ipairs {'c', 'eager'} do
         local function f(x, y)
            x:narrow(1, 3, 2):mul(3)
            local g = y:clone():requiresGrad(true)
            backward(torch.tanh(g * 2):sum())
            return g:grad()
         end
         local c = torch.compile(f, {backend = backend})
         local function call(h)
            torch.manualSeed(1)
            local base = torch.randn(7)
            return h(base:narrow(1, 1, 5), base:narrow(1, 3, 5))
         end
         for _ = 1, 3 do assert.near(call(c), call(f), 1e-14) end
      end
   end)

   it('of a result leaves what another result needs', function()
      local function f(x)
         local a, c, h = x * 2, torch.tanh(x), x * x
         return torch.exp(a):sum(), c:sum(), torch.exp(h):sum(), torch.sin(h):sum() -- the last two share h
      end
      for _, backend in ipairs {'c', 'eager'} do
         local function outcome(g)
            local x = torch.ones(3):requiresGrad(true)
            local p, q, r, s = g(x)
            local list = {}
            for i, loss in ipairs {q, p, r, s, q} do list[i] = {(pcall(loss.backward, loss)), x:grad():clone()} end
            return list
         end
         assert.near(outcome(torch.compile(f, {backend = backend})), outcome(f), 1e-12)
      end
   end)

   it('reads the weights of now, also when a compiled call changed them', function()
      for _, backend in ipairs {'c', 'eager'} do
         local function train(wrap, flat)
            torch.manualSeed(1)
            local net = nn.Sequential():add(nn.Linear(4, 3)):add(nn.Tanh()):add(nn.Linear(3, 2))
            if flat then net:getParameters() end
            net:zeroGradParameters()
            local input
            local step = wrap(function(x)
               net:updateParameters(0.5)
               if input then net:backward(input, torch.ones(3, 2)) end
               input = x * 1
               return net:forward(input)
            end)
            local list = {}
            for k = 1, 4 do list[k] = {step(torch.ones(3, 4) * k / 4):clone(), net.gradInput:clone()} end
            return list
         end
         for _, flat in ipairs {false, true} do
            local want = train(function(f) return f end, flat)
            assert.near(train(function(f) return torch.compile(f, {backend = backend}) end, flat), want, 1e-12)
         end
      end
   end)
end)
