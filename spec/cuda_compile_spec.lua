-- torch.compile on CUDA tensors: what the same closure gives on the CPU; results that callers keep; whole steps as recorded graphs.
local C = require 'relume.core'
local count, why = C.cuda.count()
local cutorch = count > 0 and require 'cutorch' or nil

local function gpu(name, f)
   it(name, function()
      if not cutorch then return pending(why) end
      f()
   end)
end

describe('compiled on CUDA', function()
   gpu('rows, columns and whole sums agree with eager on the CPU', function()
      local function f(x, w)
         local y = torch.cmul(torch.tanh(x), w:expandAs(x))
         local n = (y - y:mean(2):expandAs(y)):pow(2):sum(2):add(1e-5):sqrt()
         local z = torch.cdiv(y, n:expandAs(y))
         return z, z:sum(1), z:max(2), torch.exp(z):sum()
      end
      for _, size in ipairs {{3, 5}, {40, 64}, {7, 1000}} do
         local x, w = torch.FloatTensor(unpack(size)):uniform(-1, 1), torch.FloatTensor(1, size[2]):uniform(-1, 1)
         local g = torch.compile(f, {fullgraph = true})
         local want = {f(x, w)}
         for _ = 1, 4 do
            local got = {g(x:cuda(), w:cuda())}
            for k = 1, 3 do assert.near(got[k]:float(), want[k], 2e-5) end
            assert.is_true(math.abs(got[4] - want[4]) < 1e-4 * math.abs(want[4]))
         end
      end
   end)

   gpu('results that are kept stay as they were', function()
      local x = torch.CudaTensor(50, 20):uniform()
      local w = torch.CudaTensor(20, 20):uniform()
      local f = torch.compile(function(a)
         local y = torch.mm(a, w)
         local z = torch.mm(torch.tanh(y), w)
         return y, torch.mm(z, w)
      end, {fullgraph = true})
      local kept, want = {}, {}
      for i = 1, 7 do
         x:fill(i)
         kept[i], want[i] = {f(x)}, {torch.mm(x, w):float()}
      end
      for i = 1, 7 do assert.near(kept[i][1]:float(), want[i][1], 1e-4) end
   end)

   gpu('a steady step makes no memory, and a backward outside reads what it left', function()
      local function build()
         torch.manualSeed(5)
         return nn.Sequential():add(nn.Linear(6, 7)):add(nn.BatchNormalization(7)):add(nn.ReLU()):add(nn.Dropout(0.3)):add(nn.Linear(7, 5)):cuda()
      end
      local x, y = torch.CudaTensor(8, 6):uniform(), torch.LongTensor(8):random(5):type('torch.CudaLongTensor')
      local function trained(compile)
         local net, criterion, made = build(), nn.CrossEntropyCriterion():cuda(), {}
         local params, grads = net:getParameters()
         local state = {learningRate = 0.1}
         local function step()
            return optim.sgd(function()
               grads:zero()
               local out = net:forward(x)
               local loss = criterion:forward(out, y)
               net:backward(x, criterion:backward(out, y))
               return loss, grads
            end, params, state)
         end
         if compile then step = torch.compile(step) end
         for i = 1, 8 do
            local before = cutorch.memoryStats().allocs
            step()
            made[i] = cutorch.memoryStats().allocs - before
         end
         return net, made
      end
      local a = trained(false)
      local b, made = trained(true)
      assert.same({0, 0, 0}, {unpack(made, 6)})
      local dy = torch.CudaTensor(8, 5):fill(1)
      assert.near(b:backward(x, dy):float(), a:backward(x, dy):float(), 1e-4)
   end)

   gpu('a number that a step gives is read while the rest of the step still runs', function()
      local x, w = torch.CudaTensor(50, 20):uniform(), torch.CudaTensor(20, 20):uniform()
      local function g(a)
         local loss = torch.sum(torch.mm(a, w))
         local grad = torch.mm(a:t(), a)
         w:add(-0.001, grad)
         return loss, torch.mm(w, w)
      end
      local f, start = torch.compile(g, {fullgraph = true}), cutorch.memoryStats().early
      for i = 1, 6 do
         x:fill(0.1 * i)
         local want = torch.mm(x, w):sum()
         local loss = f(x)
         assert.is_true(math.abs(loss - want) < 1e-4 * math.abs(want), loss .. ' ' .. want)
      end
      assert.is_true(cutorch.memoryStats().early - start >= 4)
   end)

   gpu('a one-element result that is kept or written stays what it is', function()
      local x, w = torch.CudaTensor(5, 20):uniform(), torch.CudaTensor(20, 20):uniform()
      local f = torch.compile(function(a)
         local y = torch.mm(torch.mm(a, w), w)
         return y:sum(1):sum(2), torch.mm(y, w)
      end, {fullgraph = true})
      local kept, want = {}, {}
      for i = 1, 8 do
         x:fill(i)
         kept[i], want[i] = f(x), torch.mm(torch.mm(x, w), w):sum()
         if i % 2 == 0 then kept[i]:mul(-1) want[i] = -want[i] end
      end
      for i = 1, 8 do
         local got = kept[i][1][1]
         assert.is_true(math.abs(got - want[i]) < 1e-4 * math.abs(want[i]), i .. ': ' .. got .. ' ' .. want[i])
      end
   end)

   gpu('draws are those of eager, step after step', function()
      local x = torch.CudaTensor(64, 33):fill(1)
      local function g(a) return torch.cmul(a, a.new(64, 33):uniform()) end
      local f = torch.compile(g, {fullgraph = true})
      torch.manualSeed(3)
      local want = {}
      for i = 1, 4 do want[i] = g(x):float() end
      torch.manualSeed(3)
      for i = 1, 4 do assert.near(f(x):float(), want[i], 1e-6) end
   end)

   gpu("a convolution's bias is added where its result is read", function()
      local texts, x, w, b = {}, torch.FloatTensor(2, 3, 6, 7):uniform(-1, 1), torch.FloatTensor(4, 3, 3, 3):uniform(-1, 1), torch.FloatTensor(9):uniform(-1, 1)
      local function backend(graph)
         local plan = graph:compile()
         texts[#texts + 1] = plan:describe()
         return function(...) return plan:call(...) end
      end
      local function f(p, q, r)
         local y = C.op.conv2d(p, q, r:narrow(1, 2, 4), {1, 1}, {1, 1}, {1, 1}, 1)
         return torch.tanh(y), y:sum(1)
      end
      local want, got = {f(x, w, b)}, {torch.compile(f, {fullgraph = true, backend = backend})(x:cuda(), w:cuda(), b:cuda())}
      for k = 1, 2 do assert.near(got[k]:float(), want[k], 1e-5) end
      assert.truthy(texts[1]:find('kernel add,', 1, true), texts[1])
   end)

   gpu('what is written over zeros needs none in memory', function()
      local idx, src = torch.LongTensor(30):random(7):add(-1):type('torch.CudaLongTensor'), torch.CudaTensor(30, 4):uniform(-1, 1)
      local wide = idx:view(30, 1):expand(30, 4):contiguous()
      local texts = {}
      local function backend(graph)
         local plan = graph:compile()
         texts[#texts + 1] = plan:describe()
         return function(...) return plan:call(...) end
      end
      local calls = {
         function(s) return C.op.index_add(s.new(7, 4):zero(), idx, s, 0) end,
         function(s) return C.op.scatter_add(s.new(7, 4):zero(), wide, s, 0) end,
         function(s) return C.op.put_add(s.new(7, 4):zero(), idx, s:narrow(2, 1, 1):contiguous():view(30)) end,
      }
      for k, f in ipairs(calls) do
         assert.near(torch.compile(f, {fullgraph = true, backend = backend})(src):float(), f(src):float(), 1e-5)
         assert.is_nil(texts[k]:find(' kernel ', 1, true), texts[k])
      end
   end)

   gpu('a large value that is wanted again behind a call is computed there', function()
      local x, dy = torch.CudaBFloat16Tensor(8, 200, 4):copy(torch.FloatTensor(8, 200, 4):uniform(-1, 1)), torch.CudaBFloat16Tensor(8, 200, 4):fill(1)
      local function f(a, g) -- softmax's gradient reads its result, which a product wants in a half type
         local s = torch.bmm(a, a:transpose(2, 3)):type('torch.CudaTensor'):mul(0.5)
         local e = torch.exp(s - s:max(3):expandAs(s))
         local p = torch.cdiv(e, e:sum(3):expandAs(e))
         local y = torch.bmm(p:type('torch.CudaBFloat16Tensor'), a)
         local dp = torch.bmm(g, y:transpose(2, 3)):type('torch.CudaTensor')
         return y, torch.cmul(p, dp - torch.cmul(p, dp):sum(3):expandAs(p)):type('torch.CudaBFloat16Tensor')
      end
      local text
      local function backend(graph)
         local plan = graph:compile()
         text = plan:describe()
         return function(...) return plan:call(...) end
      end
      local want, got = {f(x, dy)}, {torch.compile(f, {fullgraph = true, backend = backend})(x, dy)}
      for k = 1, 2 do assert.near(got[k]:type('torch.FloatTensor'), want[k]:type('torch.FloatTensor'), 1e-2) end
      local _, exps = text:gsub('exp', '')
      assert.equal(2, exps, text)
   end)

   gpu('products of half types that are stored as floats are not rounded in between', function()
      for _, half in ipairs {'BFloat16', 'Half'} do
         local net, n = nn.Sequential():add(nn.Linear(4, 3)):cuda(), half == 'Half' and 2049 or 257
         local x, dy = torch.CudaTensor(n, 4):fill(1), torch.CudaTensor(n, 3):fill(1)
         local f = torch.compile(function()
            torch.autocast(half, function()
               net:zeroGradParameters()
               net:forward(x)
               net:backward(x, dy)
            end)
         end)
         for _ = 1, 3 do f() end
         assert.same({n, n}, {net:get(1).gradWeight:min(), net:get(1).gradWeight:max()})
      end
   end)

   gpu('autocast runs products in a half type', function()
      local a, b = torch.CudaTensor(30, 40):uniform(), torch.CudaTensor(40, 20):uniform()
      local exact = torch.mm(a, b)
      local rough = torch.autocast('BFloat16', torch.mm, a, b)
      assert.equal('torch.CudaTensor', rough:type())
      local off = (rough - exact):abs():max()
      assert.is_true(off > 0 and off < 0.2)
   end)
end)
