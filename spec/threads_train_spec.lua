-- Threads at work: models trained in several at once, eager and compiled; data loaded ahead, as fb.resnet.torch's loader does it.

-- luacheck: globals step
local threads = require 'threads'

-- Trains a small net and returns its losses; compiled when told to. Runs in any thread.
local function train(seed, compiled)
   require 'nn'
   require 'optim'
   torch.setdefaulttensortype 'torch.FloatTensor'
   torch.manualSeed(seed)
   local x = torch.randn(32, 6)
   local y = torch.rand(32):mul(3):floor():add(1)
   local net = nn.Sequential():add(nn.Linear(6, 16)):add(nn.Tanh()):add(nn.Dropout(0.2)):add(nn.Linear(16, 3)):add(nn.LogSoftMax())
   local criterion, state = nn.ClassNLLCriterion(), {learningRate = 0.2, momentum = 0.9}
   local params, grads = net:getParameters()
   local function step(a, b)
      local function feval()
         grads:zero()
         local loss = criterion:forward(net:forward(a), b)
         net:backward(a, criterion:backward(net.output, b))
         return loss, grads
      end
      local _, losses = optim.sgd(feval, params, state)
      return losses[1]
   end
   local f, list = compiled and torch.compile(step) or step, {}
   for i = 1, 12 do list[i] = f(x, y) end
   local s = compiled and torch.compiler.stats(f) or {compiles = 0, eager = 0}
   return list, s.compiles, s.eager
end

local function near(a, b)
   for i = 1, #a do
      if math.abs(a[i] - b[i]) > 1e-4 then return false end
   end
   return #a == #b
end

describe('four threads', function()
   after_each(function() torch.setdefaulttensortype 'torch.DoubleTensor' end)

   it('train a model each, compiled, with the losses of one thread', function()
      local pool, got = threads.Threads(4), {}
      for seed = 1, 8 do
         pool:addjob(function() return train(seed, true) end, function(list, compiles, eager)
            got[seed] = list
            assert.is_true(compiles >= 1 and compiles <= 3)
            assert.equal(0, eager)
         end)
      end
      pool:synchronize()
      pool:terminate()
      for seed = 1, 8 do
         local want = train(seed, false)
         assert.is_true(near(want, got[seed]), 'losses of seed ' .. seed)
         assert.is_true(want[12] < want[1])
      end
   end)

   it('update one shared model', function()
      threads.serialization 'threads.sharedserialize'
      local net = nn.Sequential():add(nn.Linear(4, 8)):add(nn.Tanh()):add(nn.Linear(8, 1))
      local params = net:getParameters()
      local x = torch.randn(64, 4)
      local t = x:sum(2):tanh()
      local before = nn.MSECriterion():forward(net:forward(x), t)
      local at = params:data()
      local pool = threads.Threads(4, function() require 'nn' end, function()
         local mine, criterion = net, nn.MSECriterion()
         function step()
            mine:zeroGradParameters()
            local loss = criterion:forward(mine:forward(x), t)
            mine:backward(x, criterion:backward(mine.output, t))
            mine:updateParameters(0.05)
            return loss
         end
      end)
      threads.serialization 'threads.serialize'
      for _ = 1, 60 do pool:addjob(function() return step() end) end
      pool:synchronize()
      pool:terminate()
      assert.equal(at, params:data())
      assert.is_true(nn.MSECriterion():forward(net:forward(x), t) < before * 0.5)
   end)

   it('load batches ahead, each sample once an epoch, the same in any order', function()
      local size, batch = 20, 4
      local loader = {}
      function loader.new(n)
         local function init() torch.setdefaulttensortype 'torch.FloatTensor' end
         local function main(idx)
            torch.manualSeed(idx)
            _G.dataset = {get = function(i) return {input = torch.FloatTensor(2, 2):fill(i), target = i % 3 + 1} end}
            return size
         end
         return threads.Threads(n, init, main)
      end
      function loader.run(pool)
         local perm, idx, sample, n = torch.randperm(size), 1, nil, 0
         local function enqueue()
            while idx <= size and pool:acceptsjob() do
               local indices = perm:narrow(1, idx, math.min(batch, size - idx + 1))
               pool:addjob(function(list)
                  local sz = list:size(1)
                  local input, target = torch.FloatTensor(sz, 2, 2), torch.IntTensor(sz)
                  for i, k in ipairs(list:totable()) do
                     local s = _G.dataset.get(k)
                     input[i]:copy(s.input)
                     target[i] = s.target
                  end
                  collectgarbage()
                  return {input = input, target = target}
               end, function(r) sample = r end, indices)
               idx = idx + batch
            end
         end
         return function()
            enqueue()
            if not pool:hasjob() then return nil end
            pool:dojob()
            if pool:haserror() then pool:synchronize() end
            enqueue()
            n = n + 1
            return n, sample
         end
      end
      local pool = loader.new(3)
      for _ = 1, 2 do
         local seen, batches = {}, 0
         for n, sample in loader.run(pool) do
            batches = batches + 1
            assert.equal(batches, n)
            for i = 1, sample.target:size(1) do
               local k = sample.input[i][1][1]
               assert.equal(4 * k, sample.input[i]:sum())
               assert.equal(k % 3 + 1, sample.target[i])
               seen[k] = (seen[k] or 0) + 1
            end
         end
         assert.equal(5, batches)
         for k = 1, size do assert.equal(1, seen[k]) end
      end
      pool:terminate()
   end)
end)

describe('a program', function()
   local function run(text)
      local name = os.tmpname()
      local file = assert(io.open(name, 'w'))
      file:write(('package.path, package.cpath = %q, %q\n%s'):format(package.path, package.cpath, text))
      file:close()
      local pipe = assert(io.popen('timeout 60 luajit ' .. name .. ' 2>&1; echo status $?'))
      local out = pipe:read '*a'
      pipe:close()
      os.remove(name)
      return out
   end

   it('may end with a pool that was not terminated, idle or at work', function()
      local out = run [[
         local pool = require 'threads'.Threads(3)
         for i = 1, 9 do pool:addjob(function() return torch.rand(100, 100):mm(torch.rand(100, 100)):sum() end) end
         pool:dojob()
         print 'end of program' ]]
      assert.truthy(out:find '^end of program\nstatus 0', out)
   end)

   it('hears of a thread that cannot start its package', function()
      local out = run [[
         local C = require 'relume.core'
         local results = C.channel(1, 1)
         C.thread("require 'no.such.package'", results)
         print(results:pop())
         print 'went on' ]]
      assert.truthy(out:find 'a thread ends: .*no%.such%.package')
      assert.truthy(out:find 'went on\nstatus 0', out)
   end)
end)
