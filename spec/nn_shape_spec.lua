-- Modules that move, cut, repeat and reduce: values against indexing, gradients, batches, text.
local check = require 'support.module_check'

local function sizes(t) return t:size():totable() end

describe('shape modules', function()
   before_each(function() torch.manualSeed(21) end)

   it('nn.View', function()
      local x = torch.randn(2, 3, 4)
      assert.same({2, 12}, sizes(check.module(nn.View(12), x)))
      assert.same({2, 12}, sizes(check.module(nn.View(-1):setNumInputDims(2), x)))
      assert.same({12}, sizes(nn.View(-1):setNumInputDims(2):forward(x[1])))
      assert.same({6, 4}, sizes(nn.View(6, 4):forward(x)))
      assert.same({6, 4}, sizes(nn.View(-1, 4):forward(x)))
      assert.same({2, 3, 2, 2}, sizes(nn.View(3, 2, 2):forward(x)))
      assert.same({1, 12}, sizes(nn.View(12):setNumInputDims(2):forward(x[1]:view(1, 3, 4))))
      assert.same({24}, sizes(nn.View(torch.LongStorage {24}):forward(x)))
      assert.has_error(function() nn.View(5):forward(x) end)
      assert.has_error(function() nn.View(-1, -1) end)
      assert.equal('nn.View(3, 4)', tostring(nn.View(3, 4)))
   end)

   it('nn.View of a transposed tensor', function()
      local x = torch.randn(3, 2):t()
      assert.near(nn.View(6):forward(x), x:clone():view(6), 0)
   end)

   it('nn.Reshape', function()
      local x = torch.randn(2, 3, 4)
      assert.same({2, 4, 3}, sizes(check.module(nn.Reshape(4, 3), x)))
      assert.same({4, 6}, sizes(check.module(nn.Reshape(4, 6), x)))
      assert.same({1, 4, 6}, sizes(nn.Reshape(4, 6, true):forward(x:view(1, 24))))
      assert.same({4, 6}, sizes(nn.Reshape(4, 6, false):forward(x:view(1, 24))))
      assert.same({1, 24}, sizes(nn.Reshape(24):forward(x:view(1, 2, 12))))
      assert.equal('nn.Reshape(4x6)', tostring(nn.Reshape(4, 6)))
   end)

   it('nn.Squeeze and nn.Unsqueeze', function()
      assert.same({2, 3}, sizes(check.module(nn.Squeeze(), torch.randn(2, 1, 3, 1))))
      assert.same({2, 3, 1}, sizes(check.module(nn.Squeeze(2), torch.randn(2, 1, 3, 1))))
      assert.same({1, 3}, sizes(nn.Squeeze(nil, 2):forward(torch.randn(1, 1, 3))))
      assert.same({5, 3}, sizes(nn.Squeeze(1, 2):forward(torch.randn(5, 1, 3))))
      assert.same({1, 2, 3}, sizes(check.module(nn.Unsqueeze(1), torch.randn(2, 3))))
      assert.same({2, 3, 1}, sizes(check.module(nn.Unsqueeze(3), torch.randn(2, 3))))
      assert.same({2, 1, 3}, sizes(nn.Unsqueeze(1, 1):forward(torch.randn(2, 3))))
      assert.has_error(function() nn.Unsqueeze() end)
   end)

   it('nn.Transpose', function()
      local x = torch.randn(2, 3, 4)
      local y = check.module(nn.Transpose({1, 2}, {2, 3}), x)
      assert.near(y, x:transpose(1, 2):transpose(2, 3):contiguous(), 0)
      assert.is_true(y:isContiguous())
      assert.near(nn.Transpose({1, 2}):setNumInputDims(2):forward(x), x:transpose(2, 3):contiguous(), 0)
   end)

   it('nn.Select and nn.Narrow', function()
      local x = torch.randn(3, 4, 5)
      assert.near(check.module(nn.Select(2, 3), x), x:select(2, 3):clone(), 0)
      assert.near(nn.Select(-1, -2):forward(x), x:select(3, 4):clone(), 0)
      assert.near(check.module(nn.Narrow(2, 2, 2), x), x:narrow(2, 2, 2):clone(), 0)
      assert.near(nn.Narrow(2, 2, -1):forward(x), x:narrow(2, 2, 3):clone(), 0)
      assert.near(nn.Narrow(2, 2, -2):forward(x), x:narrow(2, 2, 2):clone(), 0)
      assert.near(nn.Narrow(-1, 2, 1):forward(x), x:narrow(3, 2, 1):clone(), 0)
   end)

   it('nn.Replicate', function()
      local x = torch.randn(3, 4)
      local y = check.module(nn.Replicate(2), x)
      assert.same({2, 3, 4}, sizes(y))
      assert.near(y[2], x, 0)
      assert.near(check.module(nn.Replicate(5, 2), x)[2], x:view(3, 1, 4):expand(3, 5, 4)[2]:clone(), 0)
      assert.same({3, 5, 4}, sizes(nn.Replicate(5, 1, 1):forward(x)))
      assert.same({3, 4, 5}, sizes(check.module(nn.Replicate(5, 3), x)))
   end)

   it('nn.Contiguous', function()
      local x = torch.randn(3, 2)
      assert.is_true(nn.Contiguous():forward(x:t()):isContiguous())
   end)

   it('nn.SpatialZeroPadding', function()
      local x = torch.randn(2, 3, 4)
      local y = check.module(nn.SpatialZeroPadding(1, 2, 3, 0), x)
      assert.same({2, 6, 7}, sizes(y))
      assert.near(y:narrow(2, 4, 3):narrow(3, 2, 4):clone(), x, 0)
      assert.near(y:abs():sum(), x:abs():sum(), 1e-12)
      local z = check.module(nn.SpatialZeroPadding(-1, 0, 0, -1), torch.randn(2, 2, 3, 4))
      assert.same({2, 2, 2, 3}, sizes(z))
      assert.equal('nn.SpatialZeroPadding(l=1, r=1, t=1, b=1)', tostring(nn.SpatialZeroPadding(1)))
   end)

   it('nn.SpatialUpSamplingNearest', function()
      local x = torch.randn(2, 3, 2, 3)
      local y = check.module(nn.SpatialUpSamplingNearest(2), x)
      assert.same({2, 3, 4, 6}, sizes(y))
      for i = 1, 4 do
         for j = 1, 6 do assert.equal(x[2][3][math.ceil(i / 2)][math.ceil(j / 2)], y[2][3][i][j]) end
      end
      assert.same({3, 6, 9}, sizes(check.module(nn.SpatialUpSamplingNearest(3), x[1])))
   end)
end)

describe('reducing modules', function()
   before_each(function() torch.manualSeed(22) end)

   local function column(x, d, f)
      local y = x:transpose(d, x:dim())
      local flat = y:contiguous():view(-1, x:size(d))
      local r = torch.Tensor(flat:size(1))
      for i = 1, flat:size(1) do r[i] = f(flat[i]:totable()) end
      local s = y:size():totable()
      s[#s] = nil
      return #s > 0 and r:view(unpack(s)) or r
   end

   local function sum(l)
      local s = 0
      for i = 1, #l do s = s + l[i] end
      return s
   end

   it('nn.Sum and nn.Mean', function()
      local x = torch.randn(3, 4)
      assert.near(check.module(nn.Sum(1), x), column(x, 1, sum), 1e-12)
      assert.near(check.module(nn.Sum(-1), x), column(x, 2, sum), 1e-12)
      assert.near(check.module(nn.Mean(2), x), column(x, 2, function(l) return sum(l) / #l end), 1e-12)
      assert.same({3, 1}, sizes(nn.Sum(2, -1, false, false):forward(x)))
      assert.same({3}, sizes(nn.Sum(1, 1):forward(x)))
      assert.near(nn.Sum(2, -1, true):forward(x), column(x, 2, sum) / 4, 1e-12)
      assert.same({1}, sizes(check.module(nn.Sum(1), torch.randn(4))))
      assert.same({3, 5}, sizes(check.module(nn.Mean(2), torch.randn(3, 4, 5))))
   end)

   it('nn.Max and nn.Min', function()
      local x = torch.randn(3, 4)
      assert.near(check.module(nn.Max(2), x), column(x, 2, function(l) return math.max(unpack(l)) end), 0)
      assert.near(check.module(nn.Min(1), x), column(x, 1, function(l) return math.min(unpack(l)) end), 0)
      assert.same({3}, sizes(nn.Max(1, 1):forward(x)))
      assert.same({3}, sizes(nn.Max(-1):forward(x)))
      assert.same({1}, sizes(nn.Max(1):forward(torch.randn(4))))
      assert.same({3, 5}, sizes(check.module(nn.Max(2), torch.randn(3, 4, 5))))
   end)
end)
