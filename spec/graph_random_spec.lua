-- Random programs of views, writes and fresh tensors: every pass keeps what eager does.
local C = require 'relume.core'
local graph = require 'support.graph'

local function generator(seed)
   return function(n)
      seed = (seed * 1103515245 + 12345) % 2147483648
      return math.floor(seed / 65536) % n + 1
   end
end

local function pick(pool, rnd) return pool[rnd(#pool)] end

local views = {
   function(t, rnd)
      local d = rnd(t:dim())
      local from = rnd(t:size(d))
      return t:narrow(d, from, rnd(t:size(d) - from + 1))
   end,
   function(t, rnd)
      if t:dim() < 2 then return t end
      local d = rnd(t:dim())
      return t:select(d, rnd(t:size(d)))
   end,
   function(t) return t:dim() == 2 and t:t() or t end,
   function(t) return t:isContiguous() and t:view(t:nElement()) or t end,
   function(t, rnd) return t:unfold(rnd(t:dim()), 1, 1) end,
   function(t, rnd)
      if t:dim() < 2 then return t end
      return t:transpose(rnd(t:dim()), rnd(t:dim()))
   end,
   function(t, rnd)
      local d = rnd(t:dim())
      return C.op.slice(t, d - 1, 0, math.ceil(t:size(d) / 2), 2)
   end,
   function(t, rnd) -- any window of the same storage from t's first element on
      local room = t:nElement() > 0 and t:isContiguous() and t:nElement() or 1
      local step = rnd(3)
      return C.op.as_strided(t, { math.ceil(room / step) }, { step }, t:storageOffset() - 1)
   end,
   function(t) return t.new():set(t) end,
   function(t) return t:isContiguous() and t.new():set(t):resize(t:nElement()) or t end,
}

-- A tensor of the pool with t's sizes, or t itself.
local function peer(pool, t, rnd)
   local found = {}
   for _, p in ipairs(pool) do
      if p:isSameSizeAs(t) then found[#found + 1] = p end
   end
   return found[1] and pick(found, rnd) or t
end

local writes = {
   function(t) t:add(1) end,
   function(t, rnd) t:mul(rnd(3) - 1.5) end,
   function(t, rnd) t:fill(rnd(9)) end,
   function(t) t:zero() end,
   function(t, rnd, pool) t:copy(peer(pool, t, rnd):clone()) end,
   function(t, rnd, pool) t:add(0.5, peer(pool, t, rnd)) end,
   function(t, rnd, pool) t:cmul(peer(pool, t, rnd)) end,
   function(t) t:tanh() end,
}

local function fresh(t, rnd, pool)
   local kind = rnd(10)
   if kind == 5 then return t:sum(rnd(t:dim())) end
   if kind == 6 then return t:float():double() end
   if kind == 7 then return torch.gt(t, 0):double() end
   if kind == 8 then return torch.mul(C.op.expand(C.op.unsqueeze(t, 0), { 2, unpack(t:size():totable()) }), 2) end
   if kind == 9 then return C.op.softmax(t, rnd(t:dim()) - 1) end
   if kind == 10 then return C.op.cat({ t, t }, rnd(t:dim()) - 1) end
   if kind == 1 then return t:clone() end
   if kind == 2 then return torch.add(t, peer(pool, t, rnd)) end
   if kind == 3 then return t.new(t:size()):fill(2) end
   local y = t.new()
   y:resizeAs(t):copy(t)
   return y
end

local function program(seed, steps)
   return function(...)
      local rnd, pool = generator(seed), { ... }
      for _ = 1, steps do
         local kind, t = rnd(10), pick(pool, rnd)
         if kind <= 4 then
            local v = pick(views, rnd)(t, rnd)
            if v:dim() <= 3 then pool[#pool + 1] = v end
         elseif kind <= 8 then pick(writes, rnd)(t, rnd, pool)
         else pool[#pool + 1] = fresh(t, rnd, pool) end
      end
      local out = {}
      for _ = 1, 3 do out[#out + 1] = pick(pool, rnd) end
      out[#out + 1] = torch.mul(pick(pool, rnd), 2)
      return unpack(out)
   end
end

local function inputs(seed)
   return function()
      local rnd = generator(seed + 7)
      local a = torch.DoubleTensor(24)
      for i = 1, 24 do a[i] = (rnd(200) - 100) / 100 end
      local sets = {
         function() return { a:view(4, 6) } end,
         function() return { a, a:narrow(1, 3, 8):view(2, 4), a:narrow(1, 11, 9):view(3, 3) } end,
         function() return { a:narrow(1, 1, 12):view(3, 4), a:narrow(1, 13, 12):view(3, 4):t() } end,
         function() return { a:view(4, 6):narrow(2, 2, 3), a:view(4, 6):select(2, 6) } end,
         function() return { a:narrow(1, 1, 10), a:narrow(1, 6, 10), torch.DoubleTensor(3, 3):fill(0.5) } end,
         function() return { a:view(2, 3, 4):transpose(1, 3) } end,
         function() return { a:view(2, 3, 4):select(2, 2):t(), a:view(2, 3, 4):select(2, 3) } end,
      }
      return pick(sets, rnd)()
   end
end

describe('random program', function()
   for seed = 1, 120 do
      it(seed .. ' gives what eager gives after every pass', function()
         local stages = graph.check(program(seed * 7919, 4 + seed % 12), inputs(seed * 31)) -- raises on a difference
         assert.is_true(#stages > 1)
      end)
   end
end)
