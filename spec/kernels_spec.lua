-- Kernels on sizes that reach their fast paths: long lines, tiles, row functions, runs of random numbers; against plain loops.
local function values(n, f)
   local t = torch.FloatTensor(n)
   for i = 1, n do t[i] = f and f(i) or (i * 7919 % 1009) / 16 - 30 end
   return t
end
local nan = 0 / 0

describe('sort of a long line', function()
   for _, dtype in ipairs { 'Float', 'Double', 'Int', 'Long', 'Char', 'Byte', 'Short' } do
      it('of ' .. dtype .. ' is stable in both directions', function()
         local x = values(1000):type(('torch.%sTensor'):format(dtype))
         for _, descending in ipairs { false, true } do
            local v, p = torch.sort(x, 1, descending)
            for i = 1, 1000 do assert.equal(x[p[i]], v[i]) end
            for i = 2, 1000 do
               if v[i] == v[i - 1] then assert.is_true(p[i] > p[i - 1]) else assert.equal(descending, v[i] < v[i - 1]) end
            end
         end
      end)
   end
   it('puts NaN last and treats both zeros alike', function()
      local x = values(600, function(i) return i == 5 and nan or i == 9 and -0.0 or i == 3 and 0.0 or i - 300.5 end)
      local v, p = torch.sort(x, 1)
      assert.is_true(v[600] ~= v[600])
      assert.equal(5, p[600])
      for i = 2, 599 do assert.is_true(v[i] >= v[i - 1]) end
   end)
end)

it('topk of a long line agrees with sort', function()
   local x = values(3000):resize(3, 1000)
   for _, descending in ipairs { false, true } do
      local v, p = torch.topk(x, 7, 2, descending)
      local sv, sp = torch.sort(x, 2, descending)
      for r = 1, 3 do
         for i = 1, 7 do
            assert.equal(sv[r][i], v[r][i])
            assert.equal(sp[r][i], p[r][i])
         end
      end
   end
end)

it('the largest value of a row is its first, NaN first of all', function()
   local x = values(5 * 100, function(i) return i % 37 end):resize(5, 100)
   x[2][60], x[2][70] = nan, nan
   local v, p = torch.max(x, 2)
   for r = 1, 5 do
      local at
      for i = 1, 100 do
         local e = x[r][i]
         if e ~= e then at = i break end
         if not at or e > x[r][at] then at = i end
      end
      assert.equal(at, p[r][1])
   end
   assert.is_true(v[2][1] ~= v[2][1])
end)

it('copies of permuted tensors place every element', function()
   local x = values(3 * 40 * 5 * 33):resize(3, 40, 5, 33)
   local y = x:permute(1, 3, 4, 2):contiguous()
   for a = 1, 3 do
      for b = 1, 40, 3 do
         for c = 1, 5 do
            for d = 1, 33, 4 do assert.equal(x[a][b][c][d], y[a][c][d][b]) end
         end
      end
   end
end)

it('batches of products agree with single ones', function()
   local a, b = values(20 * 16 * 24):resize(20, 16, 24), values(20 * 24 * 17):resize(20, 24, 17)
   local r = torch.bmm(a, b)
   for i = 1, 20 do assert.is_true((r[i] - torch.mm(a[i], b[i])):abs():max() < 1e-2) end
end)

describe('pooling', function()
   local x = values(2 * 3 * 9 * 11):resize(2, 3, 9, 11)
   local function window(plane, i, j, k, s, p)
      local best, sum
      for y = (i - 1) * s - p + 1, (i - 1) * s - p + k do
         for z = (j - 1) * s - p + 1, (j - 1) * s - p + k do
            if y >= 1 and y <= 9 and z >= 1 and z <= 11 then
               local e = plane[y][z]
               best, sum = best and math.max(best, e) or e, (sum or 0) + e
            end
         end
      end
      return best, sum
   end
   for _, c in ipairs { { 2, 2, 0 }, { 3, 1, 1 }, { 3, 2, 1 }, { 5, 3, 2 } } do
      it(('of %d every %d padded by %d'):format(unpack(c)), function()
         local k, s, p = unpack(c)
         local max = nn.SpatialMaxPooling(k, k, s, s, p, p):float():forward(x)
         local avg = nn.SpatialAveragePooling(k, k, s, s, p, p):float():forward(x)
         for n = 1, 2 do
            for ch = 1, 3 do
               for i = 1, max:size(3) do
                  for j = 1, max:size(4) do
                     local best, sum = window(x[n][ch], i, j, k, s, p)
                     assert.equal(best, max[n][ch][i][j])
                     assert.is_true(math.abs(sum / (k * k) - avg[n][ch][i][j]) < 1e-4)
                  end
               end
            end
         end
      end)
   end
end)

it('a draw does not depend on where its runs begin', function()
   for _, dtype in ipairs { 'torch.FloatTensor', 'torch.DoubleTensor' } do
      for _, f in ipairs { 'normal', 'uniform' } do
         torch.manualSeed(5)
         local long = torch.Tensor():type(dtype):resize(10000)[f](torch.Tensor():type(dtype):resize(10000))
         torch.manualSeed(5)
         local short = torch.Tensor():type(dtype):resize(7)
         short[f](short)
         for i = 1, 7 do assert.is_true(math.abs(long[i] - short[i]) < 1e-6) end
         local m = long:mean()
         assert.is_true(math.abs(m - (f == 'normal' and 0 or 0.5)) < 0.04)
      end
   end
end)

it('a masked selection keeps the order', function()
   local x = values(5000)
   local m = x:gt(3)
   local r, at = x:maskedSelect(m), 0
   for i = 1, 5000 do
      if m[i] == 1 then
         at = at + 1
         assert.equal(x[i], r[at])
      end
   end
   assert.equal(at, r:size(1))
end)

it('max pooling over windows of 2 by 2 is alike on every layout, with NaN, infinities and ties', function()
   local C = require 'relume.core'
   for _, dtype in ipairs { 'torch.FloatTensor', 'torch.DoubleTensor' } do
      for _, size in ipairs { { 2, 3, 24, 24 }, { 1, 2, 5, 7 }, { 2, 1, 2, 3 }, { 1, 1, 17, 34 } } do
         local x = torch.Tensor(unpack(size)):random(1, 4):type(dtype)
         for i = 1, x:nElement(), 3 do x:view(-1)[i] = i % 4 == 0 and 0 / 0 or i % 4 == 1 and -math.huge or math.huge end
         local wide = x.new(size[1], size[2], size[3], 2 * size[4])
         local strided = wide:narrow(4, 1, size[4]):copy(x)
         local function pool(v) return C.op.max_pool2d(v, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }) end
         local r, at = pool(x)
         local want, where = pool(strided)
         for i = 1, r:nElement() do
            local a, b = r:view(-1)[i], want:contiguous():view(-1)[i]
            assert.is_true(a == b or a ~= a and b ~= b)
            assert.equal(where:contiguous():view(-1)[i], at:view(-1)[i])
         end
         local back = C.op.max_pool2d_dx(r, at, { size[3], size[4] })
         local other = C.op.max_pool2d_dx(r, at:transpose(3, 4):contiguous():transpose(3, 4), { size[3], size[4] })
         for i = 1, back:nElement() do
            local a, b = back:view(-1)[i], other:contiguous():view(-1)[i]
            assert.is_true(a == b or a ~= a and b ~= b)
         end
      end
   end
end)
