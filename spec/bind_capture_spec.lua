-- Fakes: what the binding does while a graph is recorded; facts and guards.
local C = require 'relume.core'
local T = torch.Tensor

describe('recording', function()
   local g, x
   before_each(function()
      local real = T{{1, 2}, {3, 4}}
      g = C.graphBegin()
      x = g:input(real)
   end)
   after_each(function() g:stop() end)

   it('makes fakes of everything', function()
      assert.is_true(C.isFake(x))
      for _, y in ipairs {torch.add(x, 1), x:t(), x[1], x[{{}, {2}}], x * x, torch.zeros(2), x:float(), x:clone(), torch.rand(2), x:gt(1), x:index(1, torch.LongTensor{1})} do
         assert.is_true(C.isFake(y), tostring(y))
      end
      assert.same({2, 2}, x:size():totable())
      assert.equal(4, x:nElement())
   end)

   it('flags numbers', function()
      for _, n in ipairs {x:sum(), x:max(), x:mean(), x:norm(), x[1][2], x:view(4):dot(x:view(4))} do
         assert.is_true(C.isFake(n))
         assert.is_true(C.isNumberResult(n))
         assert.equal(0, n:dim())
      end
      local y = torch.mul(x, x:sum())
      assert.is_true(C.isFake(y))
      x:add(x:max(), x)
      x[1] = x:sum()
   end)

   it('breaks where values are needed', function()
      for _, f in ipairs {function() return x:totable() end, function() x:apply(function() end) end, function() return x:data() end,
         function() return x:nonzero() end, function() return x:maskedSelect(x:gt(1)) end, function() return torch.equal(x, x) end} do
         local ok, err = pcall(f)
         assert.is_false(ok)
         assert.is_truthy(tostring(err):find('[capture] needs values:', 1, true), tostring(err))
      end
   end)

   it('prints fakes without values', function()
      assert.is_truthy(tostring(x):find('size 2x2, fake', 1, true))
   end)
end)

describe('registry', function()
   it('lists what capture may call', function()
      assert.equal('add', C.capturable[torch.add])
      assert.equal('add', C.capturable[T().add])
      assert.equal('narrow', C.capturable[T().narrow])
      assert.is_truthy(C.capturable[C.op.softmax])
      assert.is_nil(C.capturable[T().apply])
   end)
end)

describe('facts and guards', function()
   local function facts(t)
      local name, grad, sizes, strides, offset, _, n = C.tensorFacts(t)
      return {type = name, requiresGrad = grad, sizes = sizes, strides = strides, offset = offset, storageSize = n}
   end

   it('hold for what was captured and nothing else', function()
      local a, b = torch.rand(2, 3), torch.rand(3)
      local guard = C.guardNew({facts(a), facts(b)})
      assert.is_true(guard(a, b))
      assert.is_true(guard(torch.rand(2, 3), torch.rand(3)))
      assert.is_false(guard(a, torch.rand(4)))
      assert.is_false(guard(a, torch.FloatTensor(3)))
      assert.is_false(guard(torch.rand(3, 2):t(), b))
      assert.is_false(guard(a, 5))
      assert.is_false(guard(a))
      assert.is_false(guard(torch.rand(2, 3):requiresGrad(true), b))
   end)

   it('watch sharing', function()
      local s = torch.rand(6)
      local a, b = s:narrow(1, 1, 3), s:narrow(1, 4, 3)
      local shared = C.guardNew({facts(a), facts(b)}, {{1, 2}})
      assert.is_true(shared(a, b))
      assert.is_false(shared(a, torch.rand(6):narrow(1, 4, 3)))
      local separate = C.guardNew({facts(a), facts(b)})
      assert.is_false(separate(a, b))
      assert.is_true(separate(a, torch.rand(6):narrow(1, 4, 3)))
   end)
end)
