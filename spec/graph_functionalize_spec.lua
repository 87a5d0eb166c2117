-- Functionalize: the same results and the same changed inputs as eager after every pass, for writes through views of all kinds.
local C = require 'relume.core'
local graph = require 'support.graph'

local function range(n, first)
   local t = torch.DoubleTensor(n)
   for i = 1, n do t[i] = (first or 0) + i end
   return t
end

local function one(...)
   local sizes = { ... }
   return function() return { range(torch.LongStorage(sizes):totable()[1] * (sizes[2] or 1)):view(unpack(sizes)) } end
end

local function last(stages) return stages[#stages][2] end

local function updates(g)
   local _, ends = g:walk()
   return ends.updates
end

describe('functionalize', function()
   it('leaves no writes and one update for a whole input', function()
      local g = last(graph.check(function(x) x:add(1):mul(2) end, one(3, 4)))
      assert.is_nil(g:ops().write)
      assert.equal(1, #updates(g))
      assert.equal(0, updates(g)[1].input)
      assert.is_nil(g:ops().scatter_window)
   end)

   it('reads a view after the base was written', function()
      graph.check(function(x)
         local v = x:t()
         x:mul(3)
         return v + 1
      end, one(3, 4))
   end)

   it('reads the base after a view was written', function()
      graph.check(function(x)
         x:narrow(2, 2, 2):fill(7)
         return x * 2, x:select(1, 2) + 1
      end, one(3, 4))
   end)

   it('writes through a transposed view', function()
      local g = last(graph.check(function(x)
         local v = x:t()
         v:select(1, 2):zero()
         v:add(1)
         return x + 0.5
      end, one(3, 4)))
      assert.is_nil(g:ops().write)
   end)

   it('keeps the strides of a written value', function() -- reading every second element of a strided window
      graph.check(function(x)
         local v = x:select(2, 1)
         v:add(1)
         return C.op.as_strided(v, { 3 }, { 2 }, v:storageOffset() - 1) * 1
      end, one(6, 2))
   end)

   it('copies between overlapping windows', function()
      graph.check(function(x)
         x:narrow(1, 2, 5):copy(x:narrow(1, 1, 5):clone())
         return x:clone()
      end, one(6))
   end)

   it('swaps two inputs', function()
      graph.check(function(x, y)
         local t = x:clone()
         x:copy(y)
         y:copy(t)
      end, function() return { range(4), range(4, 10) } end)
   end)

   it('returns a copy taken before a write', function()
      graph.check(function(x)
         local y = x:clone()
         x:zero()
         return y
      end, one(3, 4))
   end)

   it('fills a fresh tensor piece by piece', function()
      graph.check(function(x)
         local y = torch.DoubleTensor(3, 4)
         for i = 1, 3 do y:select(1, i):copy(x:select(1, i)):mul(i) end
         return y
      end, one(3, 4))
   end)

   it('grows a fresh tensor by resize', function()
      graph.check(function(x)
         local y = torch.DoubleTensor(2):fill(5)
         y:resize(4)
         y:narrow(1, 3, 2):copy(x:narrow(1, 1, 2))
         return y
      end, one(6))
   end)

   it('updates only the windows that change in a flat buffer', function()
      local function make()
         local flat = range(24)
         return { flat, flat:narrow(1, 1, 12):view(3, 4), flat:narrow(1, 13, 8):view(2, 4), range(12, 100):view(3, 4) }
      end
      local g = last(graph.check(function(_, w, _, d) w:add(-0.5, d) end, make))
      local u = updates(g)
      assert.equal(1, #u)
      assert.equal(1, u[1].input)
      assert.is_nil(g:ops().scatter_window)
      assert.is_nil(g:ops().cat)
   end)

   it('runs the flat parameter step without scatter chains', function()
      local function make()
         local flat, gflat = range(20), range(20, 50)
         return { flat, gflat, flat:narrow(1, 1, 12):view(3, 4), flat:narrow(1, 13, 8), gflat:narrow(1, 1, 12):view(3, 4), gflat:narrow(1, 13, 8), range(12):view(3, 4),
            range(8) }
      end
      local g = last(graph.check(function(flat, gflat, w, b, gw, gb, dw, db)
         gflat:zero()
         local loss = torch.cmul(w, dw)
         gw:add(dw)
         gb:add(2, db)
         flat:add(-0.1, gflat)
         return loss + 1, b + 1
      end, make))
      assert.is_nil(g:ops().scatter_window)
      assert.equal(1, g:ops().cat)
   end)

   it('writes to disjoint columns', function()
      graph.check(function(x)
         x:select(2, 1):fill(1)
         x:select(2, 3):copy(x:select(2, 2))
         return x:sum(1)
      end, one(4, 3))
   end)

   it('updates an input that is a strided window', function()
      local function make()
         local base = range(12):view(3, 4)
         return { base:select(2, 2), base:select(2, 4) }
      end
      graph.check(function(a, b)
         a:add(1)
         a:narrow(1, 1, 2):mul(3)
         return a + b
      end, make)
   end)

   it('writes the same window given twice', function()
      local function make()
         local x = range(6)
         return { x, x:narrow(1, 1, 6) }
      end
      graph.check(function(a, b)
         a:add(1)
         return b * 2
      end, make)
   end)

   it('keeps outputs that share memory', function()
      local g = graph.check(function(x)
         local y = x * 2
         y:narrow(1, 1, 1):zero()
         return y, y:t()
      end, one(3, 4))
      local a, b = last(g):run(one(3, 4)(), {})
      a:fill(9)
      assert.equal(9, b[2][3])
   end)

   it('separates outputs that do not share memory', function()
      local g = graph.check(function(x) return x + 1, x + 1, x:clone() end, one(3, 4))
      local x = one(3, 4)()
      local a, b, c = last(g):run(x, {})
      a:fill(9)
      c:fill(8)
      assert.equal(2, b[1][1])
      assert.equal(1, x[1][1][1])
   end)

   it('returns a view of a changed input', function()
      local g = graph.check(function(x)
         x:add(1)
         return x:narrow(1, 2, 2)
      end, one(3, 4))
      local x = one(3, 4)()
      local v = last(g):run(x, {})
      v:fill(0)
      assert.equal(0, x[1][2][1])
   end)

   it('writes to an expanded window', function()
      graph.check(function(x)
         C.op.expand(x:narrow(2, 1, 1), { 3, 4 }):fill(3)
         return x * 1
      end, one(3, 4))
   end)

   it('handles empty windows', function()
      graph.check(function(x)
         local e = torch.DoubleTensor()
         x:add(1)
         return x * 2, e
      end, one(3, 4))
   end)

   it('keeps the counters of random ops', function()
      graph.check(function(x)
         x:uniform(0, 1)
         local y = C.op.dropout(x, 0.5)
         x:add(y)
         return C.op.rand({ 5 }, 'Double')
      end, one(3, 4))
   end)
end)
