-- Indexing: reading and assigning by number, table, mask and storage; errors; what fakes and gradients see.
local function raises(pattern, f)
   local ok, err = pcall(f)
   assert.is_false(ok)
   assert.is_truthy(tostring(err):find(pattern), tostring(err))
end

local function matrix() return torch.range(1, 12):view(3, 4) end

describe('reading', function()
   it('by number selects or gives the element', function()
      local x = matrix()
      assert.same({5, 6, 7, 8}, x[2]:totable())
      assert.equal(7, x[2][3])
      assert.equal(12, x[-1][-1])
      x[1][1] = 50
      assert.equal(50, x:storage()[1])
   end)

   it('by table takes numbers, ranges and everything', function()
      local x = matrix()
      assert.equal(7, x[{2, 3}])
      assert.same({{2, 3}, {6, 7}}, x[{{1, 2}, {2, 3}}]:totable())
      assert.same({3, 7, 11}, x[{{}, 3}]:totable())
      assert.same({{3}, {7}, {11}}, x[{{}, {3}}]:totable())
      assert.same({{11, 12}}, x[{{-1}, {-2, -1}}]:totable())
      assert.same({9, 10, 11, 12}, x[{3}]:totable())
      assert.same({{5, 6, 7, 8}}, x[{{2}}]:totable())
   end)

   it('by mask selects elements', function()
      local x = matrix()
      assert.same({11, 12}, x[x:gt(10)]:totable())
   end)

   it('by LongStorage gives one element', function()
      assert.equal(7, matrix()[torch.LongStorage{2, 3}])
   end)

   it('raises out of range', function()
      local x = matrix()
      raises('bind_index_spec.*out of range', function() return x[4] end)
      raises('out of range', function() return x[0] end)
      raises('out of range', function() return x[-4] end)
      raises('too many indices', function() return x[{1, 2, 3}] end)
      raises('out of range', function() return x[{{1, 9}}] end)
      raises('empty range', function() return x[{{3, 2}}] end)
      raises('too many', function() return torch.Tensor()[1] end)
      raises('need number', function() return x[true] end)
      raises('out of range', function() return x[1.5] end)
   end)
end)

describe('assigning', function()
   it('numbers and tensors', function()
      local x = torch.zeros(2, 3)
      x[1] = 4
      x[{2, 1}] = 5
      x[{{}, {3}}] = 6
      assert.same({{4, 4, 6}, {5, 0, 6}}, x:totable())
      x[2] = torch.Tensor{1, 2, 3}
      assert.same({1, 2, 3}, x[2]:totable())
      x[{{}, 1}] = torch.IntTensor{8, 9}
      assert.same({{8, 4, 6}, {9, 2, 3}}, x:totable())
      x[x:gt(5)] = 0
      assert.same({{0, 4, 0}, {0, 2, 3}}, x:totable())
      x[torch.ByteTensor{{1, 0, 0}, {1, 0, 0}}] = torch.Tensor{7, 8}
      assert.same({7, 8}, x[{{}, 1}]:totable())
      x[torch.LongStorage{1, 1}] = 1
      assert.equal(1, x[1][1])
   end)

   it('rank-0 tensors as numbers', function()
      local x = torch.zeros(3)
      local s = torch.Tensor{2}:requiresGrad(true):sum():detach()
      x[2] = s
      assert.same({0, 2, 0}, x:totable())
      x:fill(s)
      assert.same({2, 2, 2}, x:totable())
   end)

   it('raises', function()
      local x = matrix()
      raises('element counts', function() x[1] = torch.Tensor(3) end)
      raises('out of range', function() x[9] = 1 end)
      raises('need number or tensor', function() x[1] = 'a' end)
   end)

   it('keeps integer types', function()
      local x = torch.LongTensor{1, 2, 3}
      x[2] = 7.9
      assert.same({1, 7, 3}, x:totable())
      local b = torch.ByteTensor(2)
      b[1] = 300
      assert.equal(44, b[1])
   end)
end)

describe('indexing a tensor on the tape', function()
   it('gives rank-0 tensors with history', function()
      local x = torch.Tensor{1, 2, 3}:requiresGrad(true)
      local y = x[2]
      assert.is_true(torch.isTensor(y))
      torch.mul(y, 3):backward()
      assert.same({0, 3, 0}, x:grad():totable())
   end)

   it('follows rows and ranges', function()
      local x = torch.ones(2, 3):requiresGrad(true)
      torch.cmul(x[{{}, {2, 3}}], x[{{}, {1, 2}}]):sum():backward()
      assert.same({{1, 2, 1}, {1, 2, 1}}, x:grad():totable())
   end)
end)
