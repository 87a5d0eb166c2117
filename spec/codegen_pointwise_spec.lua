-- Generated code against the interpreter: elementwise ops, layouts, dtypes, empty sizes, numbers.
local plan = require 'support.plan'
local C = require 'relume.core'

local floats = { 'Float', 'Double', 'Half', 'BFloat16' }
local ints = { 'Byte', 'Char', 'Short', 'Int', 'Long' }

local function sample(dtype, ...)
   local x = torch.DoubleTensor(...)
   local i = 0
   x:apply(function() i = i + 1; return math.floor(7 * math.sin(i)) * 0.5 + 1 end)
   return x:type('torch.' .. dtype .. 'Tensor')
end

describe('generated pointwise code', function()
   for _, dtype in ipairs(floats) do
      it('computes chains in ' .. dtype, function()
         local tol = (dtype == 'Half' and 4e-3) or (dtype == 'BFloat16' and 3e-2) or 1e-5
         local info = plan.check(function(x, y)
            return torch.tanh(x * 2 + y) + torch.exp(-torch.abs(x)), torch.sqrt(torch.abs(y)) - torch.sigmoid(x)
         end, { sample(dtype, 5, 7), sample(dtype, 5, 7) }, nil, tol, dtype)
         assert.equal(1, info.kernels)
      end)
   end
   for _, dtype in ipairs(ints) do
      it('computes and wraps in ' .. dtype, function()
         plan.check(function(x, y) return C.op.mul(x, y) + x - y, C.op.lt(x, y), C.op.bitand(x, y), C.op.div(x, y), C.op.sum(x, {}, false), C.op.amax(x, { 1 }, true), C.op.amin(x, { 0 }, false) end,
            { sample(dtype, 4, 6), sample(dtype, 4, 6) }, nil, 0, dtype)
      end)
      it('casts ' .. dtype .. ' to and from floats', function()
         plan.check(function(x) return C.op.cast(x, 'Float'), C.op.cast(C.op.cast(x, 'Double') * 1.5, dtype) end, { sample(dtype, 3, 5) }, nil, 0, dtype)
      end)
   end
   it('reads transposed, sliced, expanded and strided inputs', function()
      local base = torch.randn(6, 8, 5)
      local views = { base:transpose(1, 3), base:narrow(2, 2, 4):transpose(1, 2), base:select(2, 3), base[{ {}, 1 }]:transpose(1, 2) }
      for k, v in ipairs(views) do plan.check(function(x) return x * 2 + 1, torch.exp(x) end, { v }, nil, 1e-6, 'view ' .. k) end
   end)
   it('folds views between ops into positions', function()
      local info = plan.check(function(x, b)
         local y = (x * 2):transpose(1, 2)
         return (y + b:expandAs(y)):contiguous():view(-1) * 3
      end, { torch.randn(6, 8), torch.randn(8, 1) }, nil, 1e-6)
      assert.equal(1, info.kernels)
   end)
   it('handles empty and one-element tensors', function()
      plan.check(function(x, y) return x + 1, torch.exp(y), x:sum() end, { torch.FloatTensor(0), torch.FloatTensor{ 3 } }, nil, 0)
      plan.check(function(x) return C.op.sum(x, { 1 }, true), x * 2 end, { torch.FloatTensor(3, 0) }, nil, 0)
   end)
   it('takes numbers at run time', function()
      local g = plan.graph(function(x, lr, mu) return x * lr + mu, x - lr * mu end, { torch.randn(10) }, { 0.5, 2 })
      plan.agree(g, { torch.randn(10) }, { 0.5, 2 }, 1e-12)
      plan.agree(g, { torch.randn(10) }, { -3, 0.25 }, 1e-12)
   end)
   it('keeps NaN and infinity', function()
      local x = torch.FloatTensor{ 0 / 0, 1 / 0, -1 / 0, 0, -0, 1, -1, 100, -100, 1e30 }
      plan.check(function(v) return torch.exp(v), torch.tanh(v), torch.log(v), C.op.maximum(v, v * 0), C.op.relu(v), C.op.gelu(v), C.op.softplus(v) end, { x }, nil, 1e-6)
      plan.check(function(v) return C.op.amax(v, { 0 }, false), C.op.amin(v, { 0 }, false) end, { x }, nil, 0)
   end)
   it('gathers with checked indices', function()
      local x, i = torch.randn(5, 7), torch.LongTensor{ { 0, 6, 3 }, { 1, 1, 1 }, { 2, 0, 5 }, { 6, 6, 6 }, { 4, 3, 2 } }
      plan.check(function(a, k) return C.op.gather(a, k, 1) * 2, C.op.index_select(a, k:select(2, 2), 1) + 1 end, { x, i }, nil, 0)
      local g = plan.graph(function(a, k) return C.op.gather(a, k, 1) * 2 end, { x, i })
      i[1][1] = 7
      assert.has_error(function() g:compile():run({ x, i }, {}) end)
   end)
   it('joins and cuts', function()
      plan.check(function(x, y) return torch.cat({ x * 2, y + 1 }, 1), torch.cat({ torch.exp(x), x, y }, 1):narrow(1, 3, 4) * 2 end,
         { torch.randn(3, 5), torch.randn(4, 5) }, nil, 1e-6)
      plan.check(function(x, y) return torch.cat({ x * 2, y + 1 }, 2) - 1 end, { torch.randn(5, 3), torch.randn(5, 4) }, nil, 1e-6)
   end)
end)
