-- Closures: training code as programs of Torch7 write it (nothing -> list of {name, make}). make() gives a step, called with its number, that returns
-- a number, and the parameters that it trains. capture.lua compiles each; none was written for it.
-- luacheck: globals closures
require 'torch'
require 'nn'
require 'nngraph'
require 'optim'

local list = {}
local function add(name, make) list[#list + 1] = { name = name, make = make } end

local function mlp(n, h, k) return nn.Sequential():add(nn.Linear(n, h)):add(nn.Tanh()):add(nn.Linear(h, k)) end
local function batch(n, d, k) return torch.randn(n, d), torch.rand(n):mul(k):floor():add(1) end

add('feval and optim.sgd', function()
   local net, criterion = mlp(6, 12, 3):add(nn.LogSoftMax()), nn.ClassNLLCriterion()
   local params, grads = net:getParameters()
   local state = { learningRate = 0.1, momentum = 0.9, weightDecay = 1e-4 }
   local x, y = batch(8, 6, 3)
   return function()
      local function feval(p)
         if p ~= params then params:copy(p) end
         grads:zero()
         local loss = criterion:forward(net:forward(x), y)
         net:backward(x, criterion:backward(net.output, y))
         return loss, grads
      end
      local _, fs = optim.sgd(feval, params, state)
      return fs[1]
   end, params
end)

add('optim.adam with penalties in feval', function()
   local net, criterion = mlp(6, 12, 1), nn.MSECriterion()
   local params, grads = net:getParameters()
   local state, l1, l2 = { learningRate = 0.01 }, 1e-4, 1e-3
   local x, y = torch.randn(8, 6), torch.randn(8, 1)
   return function()
      local function feval()
         grads:zero()
         local f = criterion:forward(net:forward(x), y)
         net:backward(x, criterion:backward(net.output, y))
         f = f + l1 * torch.norm(params, 1) + l2 * torch.norm(params, 2) ^ 2 / 2
         grads:add(torch.sign(params):mul(l1) + params:clone():mul(l2))
         return f, grads
      end
      local _, fs = optim.adam(feval, params, state)
      return fs[1]
   end, params
end)

-- As char-rnn: one cell cloned over time, parameters shared, states handed from clone to clone, gradients clamped.
add('clones over time steps', function()
   local size, hidden, steps, n = 5, 7, 4, 3
   local function cell()
      local x, h = nn.Identity()(), nn.Identity()()
      local i2h, h2h = nn.Linear(size, hidden)(x), nn.Linear(hidden, hidden)(h)
      local next_h = nn.Tanh()(nn.CAddTable()({ i2h, h2h }))
      return nn.gModule({ x, h }, { next_h, nn.LogSoftMax()(nn.Linear(hidden, size)(next_h)) })
   end
   local proto = cell()
   local params, grads = proto:getParameters()
   local clones, criteria = {}, {}
   for t = 1, steps do
      clones[t], criteria[t] = proto:clone('weight', 'bias', 'gradWeight', 'gradBias'), nn.ClassNLLCriterion()
   end
   local text, state = torch.rand(n, steps + 1):mul(size):floor():add(1), { learningRate = 0.01, alpha = 0.95 }
   local start, eye = torch.zeros(n, hidden), torch.eye(size)
   return function()
      local function feval()
         grads:zero()
         local h, out, inputs, loss = { [0] = start }, {}, {}, 0
         for t = 1, steps do
            inputs[t] = eye:index(1, text[{ {}, t }]:long())
            local r = clones[t]:forward { inputs[t], h[t - 1] }
            h[t], out[t] = r[1], r[2]
            loss = loss + criteria[t]:forward(out[t], text[{ {}, t + 1 }])
         end
         local dh = start:clone():zero()
         for t = steps, 1, -1 do
            local dout = criteria[t]:backward(out[t], text[{ {}, t + 1 }])
            dh = clones[t]:backward({ inputs[t], h[t - 1] }, { dh, dout })[2]
         end
         grads:clamp(-5, 5)
         return loss / steps, grads
      end
      local _, fs = optim.rmsprop(feval, params, state)
      return fs[1]
   end, params
end)

add('table modules', function()
   local net = nn.Sequential()
      :add(nn.ParallelTable():add(nn.Linear(4, 6)):add(nn.Sequential():add(nn.Linear(3, 6)):add(nn.Tanh())))
      :add(nn.ConcatTable():add(nn.CAddTable()):add(nn.CMulTable()):add(nn.SelectTable(1)))
      :add(nn.JoinTable(2)):add(nn.Linear(18, 2))
   local criterion, params = nn.MSECriterion(), net:getParameters()
   local x, y = { torch.randn(5, 4), torch.randn(5, 3) }, torch.randn(5, 2)
   return function()
      net:zeroGradParameters()
      local loss = criterion:forward(net:forward(x), y)
      net:backward(x, criterion:backward(net.output, y))
      net:updateParameters(0.05)
      return loss
   end, params
end)

do
   local Scale = torch.class('closures.Scale', 'nn.Module')
   function Scale:__init(n)
      nn.Module.__init(self)
      self.weight, self.gradWeight = torch.Tensor(n):uniform(0.5, 1.5), torch.Tensor(n):zero()
   end
   function Scale:updateOutput(input)
      self.output:resizeAs(input):copy(input)
      self.output:cmul(self.weight:view(1, -1):expandAs(input))
      return self.output
   end
   function Scale:updateGradInput(input, gradOutput)
      self.gradInput:resizeAs(input):copy(gradOutput)
      self.gradInput:cmul(self.weight:view(1, -1):expandAs(input))
      return self.gradInput
   end
   function Scale:accGradParameters(input, gradOutput, scale)
      self.buffer = self.buffer or input.new()
      self.buffer:resizeAs(input):copy(input):cmul(gradOutput)
      self.gradWeight:add(scale or 1, self.buffer:sum(1):view(-1))
   end
end

add('user module with its own gradients', function()
   local net = nn.Sequential():add(nn.Linear(4, 6)):add(closures.Scale(6)):add(nn.ReLU(true)):add(nn.Linear(6, 1))
   local criterion, params = nn.AbsCriterion(), net:getParameters()
   local x, y = torch.randn(7, 4), torch.randn(7, 1)
   return function()
      net:zeroGradParameters()
      local loss = criterion:forward(net:forward(x), y)
      net:backward(x, criterion:backward(net.output, y))
      net:updateParameters(0.05)
      return loss
   end, params
end)

add('gradient clipping by norm', function()
   local net, criterion = mlp(6, 12, 2), nn.MSECriterion()
   local params, grads = net:getParameters()
   local state, limit = { learningRate = 0.05 }, 0.3
   local x, y = torch.randn(8, 6), torch.randn(8, 2):mul(3)
   return function()
      local function feval()
         grads:zero()
         local loss = criterion:forward(net:forward(x), y)
         net:backward(x, criterion:backward(net.output, y))
         local norm = grads:norm()
         if norm > limit then grads:mul(limit / norm) end
         return loss, grads
      end
      local _, fs = optim.adagrad(feval, params, state)
      return fs[1]
   end, params
end)

add('learning-rate decay by hand', function()
   local net, criterion = mlp(6, 12, 2), nn.MSECriterion()
   local params, grads = net:getParameters()
   local velocity, lr = grads:clone():zero(), 0.1
   local x, y = torch.randn(8, 6), torch.randn(8, 2)
   return function(i)
      if i % 3 == 0 then lr = lr * 0.5 end
      grads:zero()
      local loss = criterion:forward(net:forward(x), y)
      net:backward(x, criterion:backward(net.output, y))
      velocity:mul(0.9):add(-lr, grads)
      params:add(velocity)
      return loss
   end, params
end)

add('logging every third step', function()
   local net, criterion = mlp(6, 12, 3):add(nn.LogSoftMax()), nn.ClassNLLCriterion()
   local params, grads = net:getParameters()
   local state, log, sum = { learningRate = 0.1, learningRateDecay = 1e-2 }, {}, 0
   local x, y = batch(8, 6, 3)
   return function(i)
      local _, fs = optim.sgd(function()
         grads:zero()
         local loss = criterion:forward(net:forward(x), y)
         net:backward(x, criterion:backward(net.output, y))
         return loss, grads
      end, params, state)
      sum = sum + fs[1]
      if i % 3 == 0 then
         log[#log + 1] = string.format('step %d, loss %.3f', i, sum / 3)
         sum = 0
      end
      return fs[1]
   end, params
end)

add('early exit on NaN', function()
   local net, criterion = mlp(6, 12, 2), nn.SmoothL1Criterion()
   local params, grads = net:getParameters()
   local state, best = { learningRate = 0.05 }, math.huge
   local x, y = torch.randn(8, 6), torch.randn(8, 2)
   return function()
      local function feval()
         grads:zero()
         local loss = criterion:forward(net:forward(x), y)
         if loss ~= loss then error 'loss is NaN' end
         net:backward(x, criterion:backward(net.output, y))
         return loss, grads
      end
      local _, fs = optim.nag(feval, params, state)
      if fs[1] > best * 10 then return -1 end
      best = math.min(best, fs[1])
      return fs[1]
   end, params
end)

-- As dcgan.torch: two networks, two closures, two optimisers.
add('two networks against each other', function()
   local G, D = mlp(3, 8, 4), mlp(4, 8, 1):add(nn.Sigmoid())
   local pD, gD = D:getParameters()
   local pG, gG = G:getParameters()
   local criterion, label, noise = nn.BCECriterion(), torch.Tensor(6, 1), torch.Tensor(6, 3)
   local stateD, stateG, real = { learningRate = 0.01, beta1 = 0.5 }, { learningRate = 0.01, beta1 = 0.5 }, torch.randn(6, 4)
   local errD, errG
   local function fDx()
      gD:zero()
      label:fill(1)
      local errReal = criterion:forward(D:forward(real), label)
      D:backward(real, criterion:backward(D.output, label))
      noise:normal(0, 1)
      local fake = G:forward(noise)
      label:fill(0)
      local errFake = criterion:forward(D:forward(fake), label)
      D:backward(fake, criterion:backward(D.output, label))
      errD = errReal + errFake
      return errD, gD
   end
   local function fGx()
      gG:zero()
      label:fill(1)
      errG = criterion:forward(D.output, label)
      G:backward(noise, D:updateGradInput(G.output, criterion:backward(D.output, label)))
      return errG, gG
   end
   return function()
      optim.adam(fDx, pD, stateD)
      optim.adam(fGx, pG, stateG)
      return errD + errG
   end, pG
end)

add('siamese twins', function()
   local twin = mlp(5, 8, 3)
   local net = nn.ParallelTable():add(twin):add(twin:clone('weight', 'bias', 'gradWeight', 'gradBias'))
   local criterion, params, grads = nn.CosineEmbeddingCriterion(0.2), net:getParameters()
   local x, y = { torch.randn(6, 5), torch.randn(6, 5) }, torch.Tensor { 1, -1, 1, -1, 1, -1 }
   local state = { learningRate = 0.1 }
   return function()
      local _, fs = optim.adadelta(function()
         grads:zero()
         local loss = criterion:forward(net:forward(x), y)
         net:backward(x, criterion:backward(net.output, y))
         return loss, grads
      end, params, state)
      return fs[1]
   end, params
end)

add('batches from a shuffled set', function()
   local net, criterion = mlp(4, 8, 2):add(nn.LogSoftMax()), nn.ClassNLLCriterion()
   local params, x, y = net:getParameters(), batch(24, 4, 2)
   local order, size = torch.randperm(24):long(), 6
   return function(i)
      local at = (i - 1) * size % 24 + 1
      local pick = order:narrow(1, at, size)
      local input, target = x:index(1, pick), y:index(1, pick)
      net:zeroGradParameters()
      local loss = criterion:forward(net:forward(input), target)
      net:backward(input, criterion:backward(net.output, target))
      net:updateParameters(0.1)
      return loss
   end, params
end)

add('dropout and batch normalisation, training and evaluation', function()
   local net = nn.Sequential():add(nn.Linear(6, 10)):add(nn.BatchNormalization(10)):add(nn.ReLU()):add(nn.Dropout(0.3)):add(nn.Linear(10, 1))
   local criterion, params, grads = nn.MSECriterion(), net:getParameters()
   local x, y, state = torch.randn(9, 6), torch.randn(9, 1), { learningRate = 0.05, momentum = 0.5 }
   return function(i)
      net:training()
      local _, fs = optim.sgd(function()
         grads:zero()
         local loss = criterion:forward(net:forward(x), y)
         net:backward(x, criterion:backward(net.output, y))
         return loss, grads
      end, params, state)
      if i % 4 ~= 0 then return fs[1] end
      net:evaluate()
      return criterion:forward(net:forward(x), y)
   end, params
end)

add('torch.grad, parameters in tables', function()
   local p = { W = { torch.randn(6, 8):mul(0.3), torch.randn(8, 2):mul(0.3) }, b = { torch.zeros(1, 8), torch.zeros(1, 2) } }
   local x, y = torch.randn(7, 6), torch.randn(7, 2)
   local function loss(q, input, target)
      local h = torch.tanh(input * q.W[1] + q.b[1]:expand(7, 8))
      local out = h * q.W[2] + q.b[2]:expand(7, 2)
      return (out - target):pow(2):mean()
   end
   local df = torch.grad(loss)
   return function()
      local g, l = df(p, x, y)
      for _, name in ipairs { 'W', 'b' } do
         for k = 1, 2 do p[name][k]:add(-0.1, g[name][k]) end
      end
      return l
   end, p.W[1]
end)

return list
