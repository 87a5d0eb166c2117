-- Times eager CUDA ops beside the bytes or operations they must do: luajit examples/bench/gpu.lua [check]
dofile((arg[0]:match('^(.*)/[^/]*$') or '.') .. '/../paths.lua')
local torch = require 'torch'
local cutorch = require 'cutorch'
local check = arg[1] == 'check' -- small sizes, once: for compute-sanitizer
local n = check and 1000 or 64 * 1024 * 1024

local function clock(what, unit, amount, f)
   for _ = 1, check and 1 or 5 do f() end
   cutorch.synchronize()
   local times = {}
   for k = 1, check and 1 or 7 do
      local t = torch.Timer()
      for _ = 1, 5 do f() end
      cutorch.synchronize()
      times[k] = t:time().real / 5
   end
   table.sort(times)
   local m = times[math.ceil(#times / 2)]
   print(('%-28s %9.3f ms %9.1f %s'):format(what, m * 1e3, amount / m / 1e9, unit))
end

print(cutorch.getDeviceProperties().name)
local x, y, z = torch.CudaTensor(n):uniform(), torch.CudaTensor(n):uniform(), torch.CudaTensor(n)
clock('copy', 'GB/s', n * 8, function() z:copy(x) end)
clock('add', 'GB/s', n * 12, function() torch.add(z, x, y) end)
clock('tanh', 'GB/s', n * 8, function() torch.tanh(z, x) end)
clock('sum', 'GB/s', n * 4, function() torch.sum(z:resize(1), x:view(1, -1), 2) end)
z:resize(n)
clock('uniform', 'GB/s', n * 4, function() z:uniform() end)
local m = check and 40 or 4096
local a, b, c = torch.CudaTensor(m, m):uniform(-1, 1), torch.CudaTensor(m, m):uniform(-1, 1), torch.CudaTensor(m, m)
clock('mm float', 'GFLOP/s', 2 * m ^ 3, function() torch.mm(c, a, b) end)
cutorch.setTF32(true)
clock('mm tf32', 'GFLOP/s', 2 * m ^ 3, function() torch.mm(c, a, b) end)
local p, q, r = a:type('torch.CudaBFloat16Tensor'), b:type('torch.CudaBFloat16Tensor'), c:type('torch.CudaBFloat16Tensor')
clock('mm bfloat16', 'GFLOP/s', 2 * m ^ 3, function() torch.mm(r, p, q) end)
local s = torch.CudaTensor(8):fill(1)
clock('add of 8 elements', 'Gop/s', 1, function() torch.add(s, s, 1) end)
