-- nn and optim under torch.compile: chains of modules, forward and backward, give what eager gives, in one graph without breaks.

-- Step functions on two copies of a net: one eager, one compiled. Both return output, gradInput and flat gradients.
local function both(net, input, gradOutput)
   local function make(n)
      local _, grads = n:getParameters()
      return function(x, dy)
         n:zeroGradParameters()
         local y = n:forward(x)
         local dx = n:backward(x, dy)
         return y, dx, grads
      end
   end
   local copy = net:clone()
   local eager, compiled = make(net), torch.compile(make(copy), {fullgraph = true})
   for _ = 1, 2 do
      torch.manualSeed(9)
      local y, dx, g = eager(input, gradOutput)
      torch.manualSeed(9)
      local cy, cdx, cg = compiled(input, gradOutput)
      assert.near(cy, y, 1e-5)
      assert.near(cdx, dx, 1e-5)
      assert.near(cg, g, 1e-5)
      assert.is_true(rawequal(cy, copy.output) and rawequal(cdx, copy.gradInput))
   end
   return copy
end

local function randn(...) return torch.randn(...):float() end

local function chain(list)
   local net = nn.Sequential()
   for _, m in ipairs(list) do net:add(m) end
   return net:float()
end

describe('compiled nn', function()
   before_each(function() torch.manualSeed(8) end)

   it('elementwise modules', function()
      local net = chain {nn.Linear(6, 6), nn.Tanh(), nn.MulConstant(1.5), nn.ReLU(), nn.AddConstant(-0.3), nn.LeakyReLU(0.1), nn.Sigmoid(),
         nn.ELU(), nn.SoftPlus(), nn.Abs(), nn.Sqrt(), nn.Square(), nn.GELU(), nn.SiLU(), nn.HardTanh(), nn.PReLU(), nn.SoftSign(),
         nn.Threshold(0.01, 0), nn.Mul(), nn.CMul(6), nn.CAdd(6), nn.Exp(), nn.LogSoftMax()}
      both(net, randn(4, 6), randn(4, 6))
   end)

   it('convolution, pooling and batch normalisation', function()
      local net = chain {nn.SpatialConvolution(2, 4, 3, 3, 1, 1, 1, 1), nn.SpatialBatchNormalization(4), nn.ReLU(), nn.SpatialMaxPooling(2, 2),
         nn.SpatialFullConvolution(4, 3, 3, 3, 2, 2, 1, 1, 1, 1), nn.SpatialAveragePooling(2, 2, 2, 2), nn.SpatialZeroPadding(1),
         nn.SpatialUpSamplingNearest(2), nn.SpatialAdaptiveAveragePooling(2, 2), nn.View(12), nn.Linear(12, 3)}
      local copy = both(net, randn(2, 2, 8, 8), randn(2, 3))
      assert.near(copy:get(2).running_mean, net:get(2).running_mean, 1e-6)
      assert.near(copy:get(2).running_var, net:get(2).running_var, 1e-6)
   end)

   it('dropout draws the same masks', function()
      both(chain {nn.Dropout(0.4), nn.Linear(6, 5), nn.Dropout(0.2)}, randn(4, 6), randn(4, 5))
   end)

   it('containers and tables', function()
      local net = chain {nn.ConcatTable():add(nn.Linear(6, 5)):add(nn.Sequential():add(nn.Linear(6, 5)):add(nn.Tanh())), nn.CAddTable(),
         nn.Concat(2):add(nn.Linear(5, 2)):add(nn.Linear(5, 3)),
         nn.ConcatTable():add(nn.Identity()):add(nn.Sigmoid()), nn.CMulTable(),
         nn.ConcatTable():add(nn.Identity()):add(nn.Tanh()), nn.JoinTable(2), nn.LayerNorm(10), nn.Reshape(2, 5), nn.Transpose({2, 3}),
         nn.Select(2, 1),
         nn.Narrow(2, 1, 1)}
      both(net, randn(4, 6), randn(4, 1))
   end)

   it('a model in evaluate mode', function()
      local net = chain {nn.SpatialConvolution(2, 4, 3, 3), nn.SpatialBatchNormalization(4), nn.ReLU(), nn.View(4 * 16), nn.Dropout(),
         nn.Linear(64, 3)}
      net:evaluate()
      local x = randn(2, 2, 6, 6)
      local f = torch.compile(function(a) return net:forward(a) end, {fullgraph = true})
      local want = net:forward(x):clone()
      assert.near(f(x), want, 1e-5)
   end)

   local optimisers = {
      sgd = {learningRate = 0.1, momentum = 0.9, dampening = 0, weightDecay = 1e-3}, adam = {learningRate = 0.01}, adamw = {learningRate = 0.01},
      rmsprop = {learningRate = 0.01}, adagrad = {learningRate = 0.1}, adadelta = {}, adamax = {learningRate = 0.01}, nag = {learningRate = 0.1},
   }
   for name, config in pairs(optimisers) do
      it('a whole step with optim.' .. name, function()
         local method = optim[name]
         local function make()
            torch.manualSeed(3)
            local net, criterion = chain {nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)}, nn.CrossEntropyCriterion():float()
            local params, grads = net:getParameters()
            local state = {}
            for k, v in pairs(config) do state[k] = v end
            return function(x, y)
               local function feval()
                  grads:zero()
                  local out = net:forward(x)
                  local loss = criterion:forward(out, y)
                  net:backward(x, criterion:backward(out, y))
                  return loss, grads
               end
               local _, fs = method(feval, params, state)
               return fs[1]
            end, params, state
         end
         local eager, p, s = make()
         local step, q, t = make()
         local compiled = torch.compile(step, {fullgraph = true})
         local x, y = randn(6, 4), torch.LongTensor {1, 2, 3, 1, 2, 3}
         for _ = 1, 5 do
            assert.near(compiled(x, y), eager(x, y), 1e-5)
            assert.near(q, p, 1e-5)
         end
         assert.equal(s.evalCounter, t.evalCounter)
         assert.equal(s.t, t.t)
      end)
   end

   for name, make in pairs {
      MSECriterion = function() return nn.MSECriterion(), randn(3, 4), randn(3, 4) end,
      SmoothL1Criterion = function() return nn.SmoothL1Criterion(), randn(3, 4), randn(3, 4) end,
      BCECriterion = function() return nn.BCECriterion(), torch.rand(3, 4):float(), torch.rand(3, 4):float() end,
      ClassNLLCriterion = function() return nn.ClassNLLCriterion(), randn(3, 4), torch.LongTensor {1, 4, 2} end,
   } do
      it('nn.' .. name, function()
         local c, x, t = make()
         c:float()
         local loss, dx = c:forward(x, t), c:backward(x, t):clone()
         local f = torch.compile(function(a, b)
            local l = c:forward(a, b)
            return l, c:backward(a, b)
         end, {fullgraph = true})
         local cl, cdx = f(x, t)
         assert.near(cl, loss, 1e-5)
         assert.near(cdx, dx, 1e-5)
         assert.near(c.output, loss, 1e-5)
      end)
   end

   it('a single layer, and a layer given as an argument', function()
      local x, y = torch.randn(4, 3), torch.zeros(4, 2)
      local report = torch.explain(torch.compile(nn.Linear(3, 2)), x)
      assert.equal(1, report.graphs)
      assert.equal(0, report.breaks)
      local criterion, nets = nn.MSECriterion(), { nn.Linear(3, 2), nn.Linear(3, 2) }
      local function step(net)
         net:zeroGradParameters()
         local loss = criterion:forward(net:forward(x), y)
         net:backward(x, criterion:backward(net.output, y))
         return loss
      end
      local compiled = torch.compile(step)
      for i = 1, 4 do
         local net = nets[i % 2 + 1]
         local loss, dw = compiled(net), net.gradWeight:clone()
         assert.near(step(net), loss, 1e-12)
         assert.near(net.gradWeight, dw, 1e-12)
      end
   end)
end)
