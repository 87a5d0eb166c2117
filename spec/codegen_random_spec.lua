-- Random programs: views, elementwise ops, reductions, joins, products and updates mixed, generated code against the interpreter.
local plan = require 'support.plan'
local C = require 'relume.core'

-- A random program of `steps` ops over fakes; pick(n) gives 1 .. n.
local function program(pick, steps)
   local unary = { 'neg', 'abs', 'tanh', 'sigmoid', 'square', 'relu', 'gelu' }
   local binary = { 'add', 'sub', 'mul', 'maximum', 'minimum' }
   local function any(pool) return pool[pick(#pool)] end
   local function other_of_shape(pool, x)
      local fit = {}
      for _, y in ipairs(pool) do if y:isSameSizeAs(x) then fit[#fit + 1] = y end end
      return fit[pick(#fit)]
   end
   local moves = {
      function(pool) local x = any(pool); return C.op[unary[pick(#unary)]](x) end,
      function(pool) local x = any(pool); return C.op[binary[pick(#binary)]](x, other_of_shape(pool, x)) end,
      function(pool) local x = any(pool); return C.op.mul(C.op.sub(x, C.op.amax(x, { pick(x:dim()) - 1 }, true)), 0.5) end,
      function(pool) local x = any(pool); return C.op.sum(x, { pick(x:dim()) - 1 }, true) end,
      function(pool) local x = any(pool); return x:dim() > 1 and x:transpose(pick(x:dim()), pick(x:dim())) or x * 2 end,
      function(pool)
         local x = any(pool)
         local d = pick(x:dim())
         local n = x:size(d)
         local from = pick(n)
         return x:narrow(d, from, pick(n - from + 1))
      end,
      function(pool) local x = any(pool); return C.op.softmax(x, pick(x:dim()) - 1) end,
      function(pool) local x = any(pool); return C.op.mul(x, C.op.sum(x, {}, false)) end,
      function(pool) local x = any(pool); local d = pick(x:dim()); return torch.cat({ x, C.op.neg(other_of_shape(pool, x)) }, d) end,
      function(pool) local x = any(pool); return x:contiguous():view(-1) end,
      function(pool) local x = any(pool); return C.op.layer_norm(x, nil, nil, 1, 1e-5) end,
      function(pool) local x = any(pool); return C.op.dropout(x, 0.25) end,
      function(pool) local x = any(pool); return x:dim() == 2 and C.op.tanh(C.op.matmul(x, x:t())) or C.op.cast(C.op.gt(x, 0), 'Double') end,
      function(pool) local x = any(pool); x:add(other_of_shape(pool, x) * 0.5); return x * 1 end,
      function(pool) local x = any(pool); local d = pick(x:dim()); x:narrow(d, 1, pick(x:size(d))):mul(0.5); return x + 1 end,
   }
   return function(...)
      local pool, out = { ... }, {}
      for _ = 1, steps do
         local x = moves[pick(#moves)](pool)
         if x:nElement() <= 20000 then pool[#pool + 1] = x end
      end
      for k = math.max(1, #pool - 3), #pool do out[#out + 1] = pool[k] end
      return unpack(out)
   end
end

local function generator(seed)
   local state = seed * 7919 + 17
   return function(n)
      state = (state * 1103515245 + 12345) % 2147483648
      return math.floor(state / 65536) % n + 1
   end
end

describe('random programs', function()
   local count, first = tonumber(os.getenv 'RELUME_FUZZ') or 12, tonumber(os.getenv 'RELUME_FUZZ_FIRST') or 1
   for seed = first, first + count - 1 do
      it('number ' .. seed, function()
         torch.manualSeed(seed)
         local pick = generator(seed)
         local m, n = 4, 6
         if seed % 3 == 0 then m, n = 50, 72 end -- several chunks of rows
         local inputs = { torch.randn(m, n), torch.randn(n, m):t(), torch.randn(m, n) }
         local info = plan.check(program(pick, 6 + seed % 12), inputs, nil, 1e-8, 'program ' .. seed) -- raises on a difference
         assert.is_true(info.launches > 0)
      end)
   end
end)
