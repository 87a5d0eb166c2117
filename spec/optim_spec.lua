-- Optimisers: first steps against the formulas in plain Lua, state between calls, and minima of small functions.

-- A quadratic bowl f = sum a_i (x_i - c_i)^2 / 2.
local function bowl()
   local a, c = torch.Tensor {1, 5, 0.5}, torch.Tensor {1, -2, 3}
   return function(x)
      local d = x - c
      return 0.5 * torch.cmul(a, torch.cmul(d, d)):sum(), torch.cmul(a, d)
   end, c, a
end

local function rosenbrock(x)
   local a, b = x[1], x[2]
   return 100 * (b - a * a) ^ 2 + (1 - a) ^ 2, torch.Tensor {-400 * a * (b - a * a) - 2 * (1 - a), 200 * (b - a * a)}
end

-- Runs rule(g, x, s, i, step) per element in plain Lua beside the method, from 0, and compares x after each of 5 steps.
local function against(method, config, rule, weightDecay)
   local f, c, a = bowl()
   local x, state = torch.zeros(3), {}
   local want, s = {0, 0, 0}, {{}, {}, {}}
   for step = 1, 5 do
      local y, fs = optim[method](f, x, config, state)
      assert.is_true(rawequal(x, y))
      assert.equal('number', type(fs[1]))
      for i = 1, 3 do
         local g = a[i] * (want[i] - c[i])
         if weightDecay then g = g + weightDecay * want[i] end
         want[i] = rule(g, want[i], s[i], step)
         assert.near(x[i], want[i], 1e-10)
      end
   end
   return state
end

describe('optim', function()
   it('sgd', function()
      local state = against('sgd', {learningRate = 0.1, learningRateDecay = 0.5}, function(g, x, _, n)
         return x - 0.1 / (1 + (n - 1) * 0.5) * g
      end)
      assert.equal(5, state.evalCounter)
      assert.is_nil(state.dfdx)
      state = against('sgd', {learningRate = 0.1, momentum = 0.9, dampening = 0, weightDecay = 0.01}, function(g, x, s)
         s.v = s.v and 0.9 * s.v + g or g
         return x - 0.1 * s.v
      end, 0.01)
      assert.same({3}, state.dfdx:size():totable())
      against('sgd', {learningRate = 0.1, momentum = 0.9}, function(g, x, s)
         s.v = s.v and 0.9 * s.v + (1 - 0.9) * g or g
         return x - 0.1 * s.v
      end)
      against('sgd', {learningRate = 0.1, momentum = 0.9, dampening = 0, nesterov = true}, function(g, x, s)
         s.v = s.v and 0.9 * s.v + g or g
         return x - 0.1 * (g + 0.9 * s.v)
      end)
      assert.has_error(function() optim.sgd(bowl(), torch.zeros(3), {nesterov = true}) end)
   end)

   it('sgd with individual rates and decays', function()
      local f, c, a = bowl()
      local x = torch.zeros(3)
      optim.sgd(f, x, {learningRate = 0.1, learningRates = torch.Tensor {1, 2, 0}, weightDecays = torch.Tensor {0, 0, 0}})
      assert.near(x, torch.Tensor {0.1 * a[1] * c[1], 0.2 * a[2] * c[2], 0}, 1e-12)
   end)

   it('adam', function()
      local state = against('adam', {learningRate = 0.05, beta1 = 0.8}, function(g, x, s, n)
         s.m, s.v = 0.8 * (s.m or 0) + 0.2 * g, 0.999 * (s.v or 0) + 0.001 * g * g
         return x - 0.05 * math.sqrt(1 - 0.999 ^ n) / (1 - 0.8 ^ n) * s.m / (math.sqrt(s.v) + 1e-8)
      end)
      assert.equal(5, state.t)
      assert.is_not_nil(state.m and state.v)
   end)

   it('adamw', function()
      against('adamw', {learningRate = 0.05, weightDecay = 0.1}, function(g, x, s, n)
         s.m, s.v = 0.9 * (s.m or 0) + 0.1 * g, 0.999 * (s.v or 0) + 0.001 * g * g
         local denom = math.sqrt(s.v) / math.sqrt(1 - 0.999 ^ n) + 1e-8
         return x * (1 - 0.05 * 0.1) - 0.05 / (1 - 0.9 ^ n) * s.m / denom
      end)
   end)

   it('adamax', function()
      against('adamax', {learningRate = 0.05}, function(g, x, s, n)
         s.m, s.u = 0.9 * (s.m or 0) + 0.1 * g, math.max(0.999 * (s.u or 0), math.abs(g) + 1e-38)
         return x - 0.05 / (1 - 0.9 ^ n) * s.m / s.u
      end)
   end)

   it('rmsprop', function()
      against('rmsprop', {learningRate = 0.05, alpha = 0.9, weightDecay = 0.1}, function(g, x, s)
         s.m = 0.9 * (s.m or 0) + 0.1 * g * g
         return x - 0.05 * g / (math.sqrt(s.m) + 1e-8)
      end, 0.1)
   end)

   it('adagrad', function()
      local state = against('adagrad', {learningRate = 0.3, learningRateDecay = 0.1}, function(g, x, s, n)
         s.v = (s.v or 0) + g * g
         return x - 0.3 / (1 + (n - 1) * 0.1) * g / (math.sqrt(s.v) + 1e-10)
      end)
      assert.is_not_nil(state.paramVariance and state.paramStd)
   end)

   it('adadelta', function()
      against('adadelta', {rho = 0.8, eps = 1e-4}, function(g, x, s)
         s.v = 0.8 * (s.v or 0) + 0.2 * g * g
         local d = math.sqrt((s.a or 0) + 1e-4) / math.sqrt(s.v + 1e-4) * g
         s.a = 0.8 * (s.a or 0) + 0.2 * d * d
         return x - d
      end)
   end)

   it('nag', function()
      local f, c, a = bowl()
      local x, state, config = torch.zeros(3), {}, {learningRate = 0.1, momentum = 0.5}
      local want, v = 0, nil
      for _ = 1, 4 do
         optim.nag(f, x, config, state)
         if v then want = want + 0.5 * v end
         local g = a[2] * (want - c[2])
         v = 0.5 * (v or 0) - 0.1 * g
         want = want - 0.1 * g
         assert.near(x[2], want, 1e-10)
      end
      assert.has_error(function() optim.nag(f, x, {momentum = 0}) end)
   end)

   it('asgd', function()
      local f, c, a = bowl()
      local x = torch.zeros(3)
      local _, _, average = optim.asgd(f, x, {eta0 = 0.1, lambda = 0.01})
      assert.near(x, torch.cmul(a, c) * 0.1, 1e-12)
      assert.near(average, x, 1e-12)
   end)

   it('rprop', function()
      local f, c = bowl()
      local x, state = torch.zeros(3), {}
      optim.rprop(f, x, {}, state)
      assert.near(x, torch.sign(c) * 0.1, 1e-12)
      for _ = 1, 60 do optim.rprop(f, x, {}, state) end
      assert.near(x, c, 1e-2)
   end)

   it('keeps state in config when no state is given', function()
      local config = {learningRate = 0.1}
      optim.adam(bowl(), torch.zeros(3), config)
      assert.equal(1, config.t)
   end)

   it('lbfgs finds minima, with and without a line search', function()
      local f, c = bowl()
      local x = torch.zeros(3)
      local _, history, evals = optim.lbfgs(f, x, {maxIter = 50, lineSearch = optim.lswolfe})
      assert.near(x, c, 1e-4)
      assert.is_true(history[#history] < 1e-8 and evals > 1)
      x = torch.zeros(3)
      optim.lbfgs(f, x, {maxIter = 100, learningRate = 0.5})
      assert.near(x, c, 1e-3)
      x = torch.Tensor {-1.2, 1}
      optim.lbfgs(rosenbrock, x, {maxIter = 200, maxEval = 1000, lineSearch = optim.lswolfe, tolFun = 1e-9})
      assert.near(x, torch.ones(2), 1e-4)
   end)

   it('lbfgs goes on over calls', function()
      local f, c = bowl()
      local x, state = torch.zeros(3), {maxIter = 1, learningRate = 0.5}
      for _ = 1, 60 do optim.lbfgs(f, x, state) end
      assert.near(x, c, 1e-3)
   end)

   it('cg finds minima', function()
      local f, c = bowl()
      local x = torch.zeros(3)
      local _, history = optim.cg(f, x, {maxIter = 50})
      assert.near(x, c, 1e-4)
      assert.is_true(history[#history] < history[1])
      x = torch.Tensor {-1.2, 1}
      optim.cg(rosenbrock, x, {maxIter = 300, maxEval = 1000})
      assert.near(x, torch.ones(2), 1e-3)
   end)

   it('polyinterp', function()
      -- f = (x - 2)^2 from values and slopes at 0 and 3.
      assert.near(optim.polyinterp(torch.Tensor {{0, 4, -4}, {3, 1, 2}}, 0, 3), 2, 1e-10)
      local x = optim.polyinterp(torch.Tensor {{0, 4, 0 / 0}, {3, 1, 0 / 0}, {1, 1, 0 / 0}})
      assert.near(x, 2, 1e-8)
   end)

   it('checkgrad', function()
      local f = bowl()
      local x = torch.randn(3)
      local before = x:clone()
      assert.is_true(optim.checkgrad(f, x) < 1e-5)
      assert.near(x, before, 0)
      assert.is_true(optim.checkgrad(function(p)
         local v, g = f(p)
         return v, g * 2
      end, x) > 0.1)
   end)

   it('trains a network', function()
      torch.manualSeed(1)
      local net, criterion = nn.Sequential():add(nn.Linear(2, 8)):add(nn.Tanh()):add(nn.Linear(8, 1)), nn.MSECriterion()
      local x, y = torch.Tensor {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, torch.Tensor {{0}, {1}, {1}, {0}}
      local params, grads = net:getParameters()
      local state = {learningRate = 0.05}
      local function feval()
         grads:zero()
         local loss = criterion:forward(net:forward(x), y)
         net:backward(x, criterion:backward(net.output, y))
         return loss, grads
      end
      local last
      for _ = 1, 300 do
         local _, fs = optim.adam(feval, params, state)
         last = fs[1]
      end
      assert.is_true(last < 1e-2)
   end)
end)

describe('optim.ConfusionMatrix', function()
   it('counts and averages', function()
      local m = optim.ConfusionMatrix(3)
      m:add(1, 1)
      m:add(torch.Tensor {0.1, 0.7, 0.2}, 1)
      m:batchAdd(torch.Tensor {{0, 0, 1}, {0, 1, 0}}, torch.LongTensor {3, 2})
      m:batchAdd(torch.LongTensor {2}, torch.LongTensor {3})
      m:updateValids()
      assert.near(m.totalValid, 3 / 5, 1e-12)
      assert.near(m.averageValid, (0.5 + 1 + 0.5) / 3, 1e-6)
      assert.near(m.averageUnionValid, (1 / 2 + 1 / 3 + 1 / 2) / 3, 1e-6)
      assert.equal(1, m.mat[3][2])
      assert.truthy(tostring(m):find('global correct: 60', 1, true))
      m:zero()
      assert.equal(0, m.mat:sum())
   end)

   it('takes class names and false rates', function()
      local m = optim.ConfusionMatrix {'cat', 'dog'}
      m:batchAdd(torch.LongTensor {1, 1, 2, 2}, torch.LongTensor {1, 2, 2, 2})
      assert.truthy(tostring(m):find('class: dog', 1, true))
      local _, frrs = m:farFrr()
      assert.near(frrs[2], 1 / 3, 1e-6)
   end)
end)

describe('optim.Logger', function()
   it('writes rows', function()
      local path = os.tmpname()
      local log = optim.Logger(path)
      log:setNames {'loss', 'error'}
      log:add {0.5, 3}
      log:add {0.25, 'x'}
      local f = assert(io.open(path))
      local text = f:read '*a'
      f:close()
      os.remove(path)
      assert.equal('loss\terror\t\n 5.0000e-01\t 3.0000e+00\t\n 2.5000e-01\tx\t\n', text)
      assert.has_error(function() log:add {{}, 1} end)
      log:style {'-', '-'}:display(false)
      log.epsfile = nil
      log:plot()
   end)
end)
