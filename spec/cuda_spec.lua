-- CUDA tensors against CPU tensors: the same calls give the same results.
local C = require 'relume.core'
local n, why = C.cuda.count()
local cutorch = n > 0 and require 'cutorch' or nil
local nn = require 'nn'

local function gpu(name, f)
   it(name, function()
      if not cutorch then return pending(why) end
      f()
   end)
end

local names = {Byte = 'CudaByte', Char = 'CudaChar', Short = 'CudaShort', Int = 'CudaInt', Long = 'CudaLong', Half = 'CudaHalf', BFloat16 = 'CudaBFloat16',
   Float = 'Cuda', Double = 'CudaDouble'}
local function device(x) return x:type('torch.' .. names[x:type():match('torch%.(.-)Tensor')] .. 'Tensor') end
local function host(x)
   if type(x) ~= 'userdata' then return torch.DoubleTensor {tonumber(x) or (x and 1 or 0)} end
   for cpu, cuda in pairs(names) do
      if x:type() == 'torch.' .. cuda .. 'Tensor' then return x:type('torch.' .. cpu .. 'Tensor'):double() end
   end
   return x:double()
end

local function close(a, b, tolerance, what)
   a, b = host(a), host(b)
   assert.same(a:size():totable(), b:size():totable(), what)
   if a:nElement() == 0 then return end
   local bad = 0
   a, b = a:contiguous():view(-1), b:contiguous():view(-1)
   for i = 1, a:nElement() do
      local p, q = a[i], b[i]
      local same = p == q or (p ~= p and q ~= q) or math.abs(p - q) <= tolerance * math.max(1, math.abs(p))
      if not same then bad = bad + 1 end
      if not same and bad == 1 then what = ('%s: element %d is %.9g, need %.9g'):format(what, i, q, p) end
   end
   assert.equal(0, bad, what)
end
local tolerances = {Half = 2e-3, BFloat16 = 2e-2, Float = 2e-6, Double = 1e-12}
-- f on CPU tensors and on their copies on the GPU.
local function both(what, f, tolerance, ...)
   local args, there = {...}, {}
   for i, x in ipairs(args) do there[i] = type(x) == 'userdata' and device(x) or x end
   local a, b = {pcall(f, unpack(args))}, {pcall(f, unpack(there))}
   assert.is_true(b[1], what .. ': ' .. tostring(b[2]))
   for i = 2, #a do close(a[i], b[i], tolerance, what) end
end

local function sample(dtype, ...)
   local x = torch.DoubleTensor(...):uniform(-3, 3)
   if dtype == 'Byte' then x:abs() end
   return x:type('torch.' .. dtype .. 'Tensor')
end
local floats, ints = {'Float', 'Double', 'Half', 'BFloat16'}, {'Byte', 'Char', 'Short', 'Int', 'Long'}

describe('CUDA', function()
   gpu('knows its device', function()
      assert.is_true(cutorch.getDeviceCount() >= 1)
      assert.equal(1, cutorch.getDevice())
      assert.truthy(#cutorch.getDeviceProperties(1).name > 3)
      local free, total = cutorch.getMemoryUsage()
      assert.is_true(free > 0 and total >= free)
      assert.has_error(function() cutorch.setDevice(99) end)
      cutorch.synchronize()
   end)

   gpu('streams and events', function()
      cutorch.reserveStreams(3)
      assert.is_true(cutorch.getNumStreams() >= 3)
      assert.equal(0, cutorch.getStream())
      local x, first, second = torch.CudaTensor(1000):fill(1), cutorch.Event(), cutorch.Event():record()
      cutorch.streamWaitFor(1, {0})
      local y = cutorch.withStream(1, function()
         assert.equal(1, cutorch.getStream())
         first:record()
         return x * 3
      end)
      assert.equal(0, cutorch.getStream())
      cutorch.streamBarrier {0, 1, 2}
      assert.equal(3000, y:sum())
      second:record():synchronize()
      assert.is_true(first:elapsed(second) >= 0)
      cutorch.setStream(2)
      second:wait()
      local z = y + x
      cutorch.streamSynchronize(2)
      cutorch.setDefaultStream()
      cutorch.streamWaitForMultiDevice(1, 0, {{2}})
      cutorch.streamBarrierMultiDevice {{0, 1, 2}}
      assert.equal(4000, z:sum())
      local ok, message = pcall(cutorch.withStream, 99, function() end)
      assert.is_false(ok)
      assert.truthy(message:find('[setStream] stream; got 99, need 0 to', 1, true))
      assert.equal(0, cutorch.getStream())
      assert.has_error(function() cutorch.withStream(1, error, 'inside') end)
      assert.equal(0, cutorch.getStream())
      assert.has_error(function() first:elapsed(3) end)
      assert.has_error(function() cutorch.reserveStreams(1000) end)
   end)

   gpu('types, copies and conversions', function()
      local x = torch.FloatTensor(3, 4):uniform()
      local y = x:cuda()
      assert.equal('torch.CudaTensor', y:type())
      assert.equal('torch.CudaTensor', torch.typename(y))
      assert.same(x:totable(), y:float():totable())
      assert.same(x:totable(), y:totable())
      assert.equal(x[2][3], y[2][3])
      y[2][3] = 7
      assert.equal(7, y:float()[2][3])
      assert.equal('torch.CudaDoubleTensor', y:cudaDouble():type())
      assert.equal('torch.CudaHalfTensor', y:cudaHalf():type())
      assert.same({{1, 2}, {3, 4}}, torch.CudaTensor({{1, 2}, {3, 4}}):totable())
      local z = torch.CudaTensor(4, 3):fill(2)
      z:copy(x:t())
      assert.same(x:t():totable(), z:totable())
      x:copy(z:t():mul(2))
      assert.same(x:t():totable(), z:totable())
      assert.equal(0, torch.CudaTensor():dim())
      assert.truthy(tostring(z):find('CudaTensor'))
      assert.has_error(function() return x + z end)
      assert.is_true(cutorch.memoryStats().live > 0)
   end)

   gpu('elementwise rows of every float type', function()
      for _, d in ipairs(floats) do
         local x, y = sample(d, 5, 7), sample(d, 5, 7)
         for _, f in ipairs {'neg', 'abs', 'sign', 'exp', 'sin', 'cos', 'tan', 'atan', 'sinh', 'cosh', 'tanh', 'sigmoid', 'floor', 'ceil', 'round', 'trunc', 'frac',
            'cinv'} do
            both(d .. ' ' .. f, function(a) return torch[f](a) end, tolerances[d] * 4, x)
         end
         for _, f in ipairs {'sqrt', 'rsqrt', 'log', 'log1p', 'lgamma'} do both(d .. ' ' .. f, function(a) return torch[f](a) end, tolerances[d] * 20, torch.abs(x) + 0.1) end
         for _, f in ipairs {'cmul', 'cdiv', 'cmax', 'cmin', 'lt', 'ge', 'eq', 'atan2'} do both(d .. ' ' .. f, function(a, b) return torch[f](a, b) end, tolerances[d] * 4, x, y) end
         both(d .. ' operators', function(a, b) return a + b * 2 - 1, 3 - a, a / 4, -b end, tolerances[d] * 2, x, y)
         both(d .. ' in place', function(a, b) return a:clone():add(2):mul(3):add(0.5, b):clamp(-2, 2) end, tolerances[d] * 2, x, y)
         both(d .. ' addcmul', function(a, b) return torch.addcmul(a, 2, b, b), torch.addcdiv(a, 2, b, b) end, tolerances[d] * 8, x, y)
      end
   end)

   gpu('elementwise rows of every integer type', function()
      for _, d in ipairs(ints) do
         local x, y = sample(d, 6, 5), sample(d, 6, 5)
         for _, f in ipairs {'abs', 'sign', 'neg'} do both(d .. ' ' .. f, function(a) return torch[f](a) end, 0, x) end
         for _, f in ipairs {'cmul', 'cdiv', 'cmax', 'cmin', 'lt', 'ge', 'eq', 'cbitand', 'cbitor', 'cbitxor', 'cremainder', 'cfmod'} do
            both(d .. ' ' .. f, function(a, b) return torch[f](a, b) end, 0, x, y)
         end
         both(d .. ' operators', function(a, b) return a + b * 2 - 1, a:clone():fill(3) end, 0, x, y)
      end
   end)

   gpu('casts between all types', function()
      for _, d in ipairs {'Byte', 'Char', 'Short', 'Int', 'Long', 'Half', 'BFloat16', 'Float', 'Double'} do
         for _, e in ipairs {'Byte', 'Char', 'Short', 'Int', 'Long', 'Half', 'BFloat16', 'Float', 'Double'} do
            local x = sample(d, 33)
            local y = device(x)
            close(x:type('torch.' .. e .. 'Tensor'), y:type('torch.' .. names[e] .. 'Tensor'), 0, d .. ' to ' .. e)
         end
      end
   end)

   gpu('strides, broadcasting and views', function()
      local x, y = sample('Float', 4, 5, 6), sample('Float', 5, 1)
      both('views', function(a, b)
         return a:transpose(1, 3) + 1, a:select(2, 3) * 2, a:narrow(3, 2, 3):clone(), a + b:view(1, 5, 1):expandAs(a), a:permute(3, 1, 2):contiguous(),
            a[1]:t() * 1
      end, 1e-6, x, y)
      both('moves', function(a)
         return torch.cat(a, a, 2), torch.cat({a, a * 2}, 1), a:repeatTensor(2, 1, 1), a:view(-1):unfold(1, 4, 2) * 1, torch.tril(a[1]), torch.triu(a[1], 1), a:reshape(6, 20)
      end, 0, x)
      both('in place on a view', function(a)
         local b = a:clone()
         b:select(1, 2):fill(9)
         b:narrow(2, 1, 2):mul(3)
         return b
      end, 0, x)
      both('zero elements', function(a) return a.new(0, 3) * 2, a.new(0):sum() end, 0, x)
   end)

   gpu('reductions', function()
      for _, d in ipairs {'Float', 'Double', 'Half', 'Int', 'Long', 'Byte'} do
         local t = tolerances[d] or 0
         local x = sample(d, 37, 65)
         both(d .. ' sum', function(a) return a:sum(), a:sum(1), a:sum(2), a:t():sum(1) end, t * 40, x)
         both(d .. ' max', function(a) return a:max(), a:min() end, 0, x)
         both(d .. ' max dim', function(a) return a:max(1) end, 0, x)
         both(d .. ' max dim', function(a)
            local v, i = a:min(2)
            return v, i
         end, 0, x)
      end
      local x = sample('Float', 300, 7000)
      both('large', function(a) return a:sum(), a:sum(1), a:sum(2), a:max(), a:mean(), a:std(), a:norm(), a:norm(1) end, 1e-4, x)
      both('mean and var', function(a) return a:mean(1), a:var(2), a:std(1) end, 1e-5, sample('Float', 20, 30))
   end)

   gpu('random draws are those of the CPU', function()
      for _, d in ipairs {'Float', 'Double'} do
         torch.manualSeed(7)
         local a, b, c = torch[d .. 'Tensor'](1001):uniform(), torch[d .. 'Tensor'](1001):normal(), torch[d .. 'Tensor'](64):bernoulli(0.3)
         cutorch.manualSeed(7)
         local p, q, r = torch[names[d] .. 'Tensor'](1001):uniform(), torch[names[d] .. 'Tensor'](1001):normal(), torch[names[d] .. 'Tensor'](64):bernoulli(0.3)
         close(a, p, 0, d .. ' uniform')
         close(b, q, 1e-6, d .. ' normal')
         close(c, r, 0, d .. ' bernoulli')
      end
   end)

   gpu('matrix products', function()
      for _, d in ipairs(floats) do
         local t = d == 'Half' and 1e-2 or d == 'BFloat16' and 6e-2 or d == 'Float' and 2e-5 or 1e-12
         local a, b = sample(d, 33, 47), sample(d, 47, 29)
         both(d .. ' mm', function(x, y) return torch.mm(x, y), torch.mm(y:t(), x:t()), torch.mm(x:t():contiguous():t(), y) end, t * 10, a, b)
         both(d .. ' bmm', function(x, y) return torch.bmm(x, y), torch.bmm(x, y:transpose(2, 3):contiguous():transpose(2, 3)) end, t * 10, sample(d, 5, 7, 9), sample(d, 5, 9, 4))
         both(d .. ' mv', function(x, y) return torch.mv(x, y[{{}, 1}]) end, t * 10, a, b)
      end
      both('Int mm', function(x, y) return torch.mm(x, y) end, 0, sample('Int', 6, 7), sample('Int', 7, 5))
      both('addmm', function(m, x, y) return torch.addmm(0.5, m, 2, x, y) end, 1e-4, sample('Float', 6, 5), sample('Float', 6, 7), sample('Float', 7, 5))
   end)

   gpu('gather, scatter and the index family', function()
      local x = sample('Float', 6, 5)
      local i = torch.LongTensor {{1, 2, 3, 4, 5}, {6, 5, 4, 3, 2}}
      both('gather', function(a, k) return a:gather(1, k) end, 0, x, i)
      both('scatter', function(a, k, s) return a:clone():scatter(1, k, s) end, 0, x, i, sample('Float', 2, 5))
      local rows = torch.LongTensor {2, 5, 2}
      both('index', function(a, k, s) return a:index(1, k), a:index(2, k), a:clone():indexAdd(1, k, s), a:clone():indexCopy(1, k, s), a:clone():indexFill(1, k, 4) end, 1e-6, x, rows,
         sample('Float', 3, 5))
      local far = x:cuda():index(1, device(torch.LongTensor {2, 9})) -- told when the host next waits
      local ok, message = pcall(cutorch.synchronize)
      assert.is_false(ok)
      assert.truthy(message:find('[index_select] index out of range; got 9 at element 2, need 1 to 6', 1, true))
      assert.equal(x[2][3], far[1][3])
      local long, many = torch.LongTensor(300):random(6), sample('Float', 300, 5)
      both('many rows', function(a, k, s) return a:clone():indexAdd(1, k, s), a:clone():indexCopy(1, k, s) end, 0, x, long, many)
      both('masked', function(a) return a:clone():maskedFill(a:gt(0), 2) end, 0, x)
   end)

   gpu('sums at indices in order when asked for', function()
      local x, idx, src = torch.FloatTensor(5, 3):zero(), torch.LongTensor(200):random(5), torch.FloatTensor(200, 3):uniform(-1, 1)
      local want = x:clone():indexAdd(1, idx, src)
      for _, on in ipairs {true, false} do
         cutorch.setDeterministic(on)
         local got = x:cuda():indexAdd(1, device(idx), src:cuda()):float()
         cutorch.setDeterministic(false)
         if on then assert.equal(0, (got - want):abs():max()) else assert.near(got, want, 1e-5) end
      end
      assert.has_error(function()
         x:cuda():indexAdd(1, device(idx):add(5), src:cuda())
         cutorch.synchronize()
      end)
   end)

   gpu('sorted lines of any length', function()
      for _, d in ipairs {'Float', 'Double', 'Half', 'Byte', 'Long'} do
         for _, long in ipairs {1, 7, 33, 1024, 1025, 5000} do
            local x = sample(d, 2, long)
            both(d .. ' sort ' .. long, function(a)
               local v, i = torch.sort(a, 2)
               local w, j = torch.sort(a, 2, true)
               return v, i, w, j
            end, 0, x)
         end
      end
      local x = sample('Float', 40, 9)
      x[3][1], x[5][1], x[7][1] = 0 / 0, math.huge, -0
      both('along other dimensions', function(a)
         local v, i = torch.sort(a, 1)
         local t, k = torch.topk(a, 3, 1, true)
         local q, p = torch.kthvalue(a:t(), 2, 2)
         local m, last = torch.mode(torch.floor(a), 2)
         return v, i, t, k, q, p, m, last, torch.median(a)
      end, 0, x)
   end)

   gpu('running sums, selections and draws', function()
      for _, d in ipairs {'Float', 'Double', 'Int'} do
         both(d .. ' scans', function(a) return torch.cumsum(a, 1), torch.cumsum(a, 2), torch.cumprod(a:sign(), 2) end, (tolerances[d] or 0) * 40, sample(d, 3, 2500))
         both(d .. ' selections', function(a)
            local b = a:clone()
            return torch.nonzero(a:gt(0)), a:maskedSelect(a:gt(1)), b:maskedCopy(b:lt(0), a:clone():fill(7)), torch.nonzero(a[1])
         end, 0, sample(d, 3, 1500))
      end
      local p = torch.FloatTensor(4, 30):uniform()
      torch.manualSeed(5)
      local a, b, c = torch.multinomial(p, 7), torch.multinomial(p, 40, true), torch.randperm(50)
      torch.manualSeed(5)
      close(a, torch.multinomial(p:cuda(), 7), 0, 'without replacement')
      close(b, torch.multinomial(p:cuda(), 40, true), 0, 'with replacement')
      close(c, torch.randperm(50), 0, 'randperm')
      assert.has_error(function()
         torch.multinomial(p:cuda():fill(-1), 1)
         cutorch.synchronize()
      end)
   end)

   gpu('convolutions and pooling', function()
      for _, d in ipairs {'Float', 'Double', 'Half'} do
         local t = d == 'Half' and 2e-2 or d == 'Float' and 2e-4 or 1e-11
         local x, w, b = sample(d, 3, 4, 9, 8), sample(d, 6, 2, 3, 3), sample(d, 6)
         both(d .. ' conv2d', function(p, q, r)
            local y = C.op.conv2d(p, q, r, {2, 1}, {1, 2}, {1, 2}, 2)
            return y, C.op.conv2d_dx(y, q, {9, 8}, {2, 1}, {1, 2}, {1, 2}, 2), C.op.conv2d_dw(y, p, {3, 3}, {2, 1}, {1, 2}, {1, 2}, 2)
         end, t * 20, x, w, b)
         both(d .. ' pooling', function(p)
            local y, i = C.op.max_pool2d(p, {3, 2}, {2, 2}, {1, 0}, {1, 1}, true)
            local z = C.op.avg_pool2d(p, {3, 2}, {2, 1}, {1, 0}, true, false)
            local u = C.op.adaptive_avg_pool2d(p, {4, 3})
            return y, i, C.op.max_pool2d_dx(y, i, {9, 8}), z, C.op.avg_pool2d_dx(z, {9, 8}, {3, 2}, {2, 1}, {1, 0}, true, false), u, C.op.adaptive_avg_pool2d_dx(u, {9, 8})
         end, t * 4, x)
      end
   end)

   gpu('convolutions whose channels lie innermost, beyond one tile', function()
      for d, t in pairs {Float = 2e-5, Half = 5e-3, BFloat16 = 5e-2} do
         local x, w = sample(d, 2, 66, 9, 9):mul(0.1), sample(d, 35, 66, 3, 3):mul(0.1)
         both(d .. ' conv2d', function(p, q)
            local y = C.op.conv2d(p, q, nil, {1, 1}, {1, 1}, {1, 1}, 1)
            return y, C.op.conv2d_dx(y, q, {9, 9}, {1, 1}, {1, 1}, {1, 1}, 1), C.op.conv2d_dw(y, p, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1)
         end, t, x, w)
         both(d .. ' parts of a list of parameters', function(p, q)
            local list = p.new(q:nElement() + p:nElement() + 2)
            local w1 = list:narrow(1, 2, q:nElement()):view(35, 66, 3, 3):copy(q)
            local x1 = list:narrow(1, q:nElement() + 3, p:nElement()):view(2, 66, 9, 9):copy(p)
            return C.op.conv2d(x1, w1, nil, {2, 1}, {1, 1}, {1, 1}, 1)
         end, t, x, w)
         both(d .. ' strided tensors', function(p, q)
            return C.op.conv2d(p:transpose(3, 4):transpose(2, 3), q, nil, {1, 2}, {1, 1}, {1, 1}, 1)
         end, t, sample(d, 2, 9, 9, 66):mul(0.1), w)
      end
   end)

   gpu('linear algebra runs on the host', function()
      local x = torch.FloatTensor(5, 5):uniform():add(torch.eye(5):float())
      close(torch.inverse(x), torch.inverse(x:cuda()), 1e-5, 'inverse')
      assert.is_true(cutorch.memoryStats().hostOps > 0)
   end)

   gpu('gradients of a small network, and a training step', function()
      torch.manualSeed(3)
      local net = nn.Sequential():add(nn.Linear(20, 16)):add(nn.Tanh()):add(nn.Linear(16, 10)):add(nn.LogSoftMax()):float()
      local criterion = nn.ClassNLLCriterion():float()
      local x, y = torch.FloatTensor(8, 20):uniform(), torch.LongTensor {1, 2, 3, 4, 5, 6, 7, 8}
      local function run(m, c, a, b)
         m:zeroGradParameters()
         local loss = c:forward(m:forward(a), b)
         m:backward(a, c:backward(m.output, b))
         local _, g = m:getParameters()
         return loss, g, m.gradInput
      end
      local there = net:clone():cuda()
      local l1, g1, i1 = run(net, criterion, x, y)
      local l2, g2, i2 = run(there, criterion:clone():cuda(), x:cuda(), device(y))
      close(l1, l2, 1e-5, 'loss')
      close(g1, g2, 1e-5, 'gradients')
      close(i1, i2, 1e-5, 'gradInput')
      local t = device(torch.DoubleTensor(4, 3):uniform()):requiresGrad(true)
      local u = t:detach():double():requiresGrad(true)
      torch.sum(torch.sigmoid(torch.cmul(t, t))):backward()
      torch.sum(torch.sigmoid(torch.cmul(u, u))):backward()
      close(u:grad(), t:grad(), 1e-12, 'tape')
   end)

   gpu('runs out of memory with an error, not a crash', function()
      local ok, message = pcall(torch.CudaTensor, 2 ^ 40)
      assert.is_false(ok)
      assert.truthy(message:find('memory', 1, true))
      assert.equal(6, torch.CudaTensor(2, 3):fill(1):sum())
   end)
end)
