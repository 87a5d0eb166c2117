-- Fold: what each rule removes and what it must keep.
local C = require 'relume.core'
local graph = require 'support.graph'

local function x34() return { torch.DoubleTensor(3, 4):fill(1.5) } end

local function opsOf(f, make, tolerance)
   local stages = graph.check(f, make or x34, nil, tolerance)
   return stages[#stages][2]:ops(), stages[#stages][2]
end

describe('fold', function()
   it('drops x*1, x/1, x+0, x-0, x^1 and double negation', function()
      local o = opsOf(function(x) return -(-(((x * 1 / 1) + 0 - 0) ^ 1)) * 2 end)
      for _, name in ipairs { 'add', 'sub', 'div', 'pow', 'neg' } do assert.is_nil(o[name]) end
      assert.equal(1, o.mul)
   end)

   it('keeps x*0 in floats', function()
      local _, g = opsOf(function(x) return x * 0 end)
      local nan = g:run({ torch.DoubleTensor(3, 4):fill(0 / 0) }, {})
      assert.is_true(nan[1][1] ~= nan[1][1])
   end)

   it('drops x*0 in integers', function()
      assert.is_nil(opsOf(function(x) return x * 0 end, function() return { torch.LongTensor(3):fill(4) } end).mul)
   end)

   it('computes constants with eager kernels', function()
      local o = opsOf(function(x) return x + torch.DoubleTensor(3, 4):fill(2):exp() end)
      assert.is_nil(o.exp)
      assert.equal(1, o.add)
   end)

   it('computes reductions of constants', function()
      local o = opsOf(function(x) return x + C.op.softmax(torch.DoubleTensor(3, 4):fill(2), 1) end)
      for _, name in ipairs { 'sum', 'amax', 'exp', 'div' } do assert.is_nil(o[name]) end
      assert.is_nil(opsOf(function(x) return x + torch.DoubleTensor(3, 4):fill(2):sum(1):sum(2):expand(3, 4) end).sum)
   end)

   it('lays constant outputs out as eager does', function()
      local _, g = opsOf(function(x)
         local y = torch.DoubleTensor(3, 4):fill(2)
         return y, y:t(), torch.DoubleTensor(3):fill(1), x * 2, torch.DoubleTensor(1):fill(7)
      end)
      local y, t, z = g:run(x34(), {})
      local nodes, ends = g:walk()
      assert.equal('cast_to', nodes[ends.outputs[5] + 1].op) -- a buffer of its own, not the constant
      assert.same({ 4, 1 }, y:stride():totable())
      assert.same({ 1, 4 }, t:stride():totable())
      assert.same({ 1 }, z:stride():totable())
      y:fill(5)
      assert.equal(5, t[4][3])
   end)

   it('turns squares into products', function()
      assert.is_nil(opsOf(function(x) return x ^ 2 end).pow)
   end)

   it('merges casts that lose nothing and keeps those that round', function()
      local function f32(x) return C.op.cast(C.op.cast(x, 'Double'), 'Float') * 2 end
      assert.is_nil(opsOf(f32, function() return { torch.FloatTensor(3):fill(0.1) } end).cast)
      local function f64(x) return C.op.cast(C.op.cast(x, 'Float'), 'Double') * 2 end
      assert.equal(2, opsOf(f64, function() return { torch.DoubleTensor(3):fill(0.1) } end).cast)
      local function bf(x) return C.op.cast(C.op.cast(x, 'BFloat16'), 'Float') * 2 end
      assert.equal(2, opsOf(bf, function() return { torch.FloatTensor(3):fill(0.1) } end, 1e-6).cast)
   end)

   it('merges equal subexpressions, also commuted', function()
      assert.equal(1, opsOf(function(x) return torch.cmul(x + x:t():t(), x + x) end).add)
      assert.equal(1, opsOf(function(x) return torch.cmul(torch.exp(x), torch.exp(x)) end).exp)
      assert.equal(1, opsOf(function(x, y) return torch.cmul(x + y, y + x) end, function()
         return { torch.DoubleTensor(3):fill(1), torch.DoubleTensor(3):fill(2) }
      end).add)
   end)

   it('never merges random draws', function()
      local o = opsOf(function(x)
         return C.op.rand({ 3, 4 }, 'Double') + C.op.rand({ 3, 4 }, 'Double') + x
      end)
      assert.equal(2, o.rand)
   end)

   it('keeps the counters of dropped random ops', function()
      local o, g = opsOf(function(x)
         local unused = C.op.rand({ 3, 4 }, 'Double')
         return C.op.rand({ 3, 4 }, 'Double') + x, unused and x * 2
      end)
      assert.equal(1, o.rand)
      assert.truthy(g:print():find 'rng=12')
   end)

   it('undoes permutations and shapes', function()
      local o = opsOf(function(x) return x:t():t():view(12):view(4, 3):view(3, 4) * 2 end)
      assert.is_nil(o.permute)
      assert.is_nil(o.view)
   end)

   it('reads what was put in a window', function()
      local o = opsOf(function(x)
         local y = torch.DoubleTensor(3, 4):zero()
         y:select(2, 2):copy(x:select(2, 3))
         return y:select(2, 2) * 2
      end)
      assert.is_nil(o.scatter_window)
   end)

   it('drops a window that is written twice', function()
      local o = opsOf(function(x)
         x:select(2, 2):fill(1)
         x:select(2, 2):fill(2)
      end)
      assert.equal(1, o.scatter_window)
   end)

   it('drops dead code and keeps inputs', function()
      local _, g = opsOf(function(x)
         local unused = torch.exp(x)
         return unused and x * 2
      end)
      assert.is_nil(g:ops().exp)
      assert.equal(1, g:ops().input)
   end)

   it('chooses branches of constant conditions', function()
      assert.is_nil(opsOf(function(x)
         return C.op.where(torch.ByteTensor(3, 4):fill(1), x * 2, x * 3)
      end).where or nil)
   end)
end)
