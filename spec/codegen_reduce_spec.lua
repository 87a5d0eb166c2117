-- Generated code against the interpreter: reductions over any dimensions, normalisation chains and their gradients, number of kernels.
local plan = require 'support.plan'
local C = require 'relume.core'

local function grads(f, xs)
   return function(...)
      local leaves = {}
      for i, x in ipairs{ ... } do leaves[i] = x:detach():requiresGrad(true) end
      local y = f(unpack(leaves))
      local dx = torch.autograd.grad({ y }, leaves)
      return y, unpack(dx)
   end, xs
end

describe('generated reductions', function()
   local subsets = { {}, { 0 }, { 1 }, { 2 }, { 0, 1 }, { 1, 2 }, { 0, 2 }, { 0, 1, 2 } }
   for _, name in ipairs{ 'sum', 'prod', 'amax', 'amin' } do
      for _, keep in ipairs{ true, false } do
         it(name .. ' over every set of dimensions, keepdim ' .. tostring(keep), function()
            for _, dims in ipairs(subsets) do
               for _, size in ipairs{ { 3, 4, 5 }, { 2, 1, 33 }, { 1, 6, 1 } } do
                  local x = torch.rand(unpack(size)):float():add(0.5)
                  plan.check(function(v) return C.op[name](v * 2 - 1, dims, keep) + 1 end, { x }, nil, 1e-5, name)
                  plan.check(function(v) return C.op[name](v, dims, keep) end, { x:transpose(1, 3) }, nil, 1e-5, name)
               end
            end
         end)
      end
   end
   for _, name in ipairs{ 'sum', 'amax' } do
      it(name .. ' of values that do not vary along a reduced dimension', function()
         for _, dims in ipairs{ { 0 }, { 1 }, { 0, 1 } } do
            local function reduce(x, keep) return C.op[name](C.op.expand(x, { 3, 4 }), dims, keep) end
            plan.check(function(n) return reduce(n * 2, true) end, {}, { 3 }, 1e-12, name)
            plan.check(function(x, n) return reduce(n * 2, true), C.op[name](x * n, dims, false) end, { torch.randn(3, 4) }, { 3 }, 1e-12, name)
            plan.check(function(x, y, z) return reduce(x, false), reduce(x * 2, true) + 1, reduce(y, true), reduce(y * 2, false), reduce(z * 2, true) end,
               { torch.randn(1, 4), torch.randn(3, 1), torch.randn(1, 1) }, nil, 1e-12, name)
         end
      end)
   end
   it('long rows, long columns and everything', function()
      local x = torch.randn(40000):float()
      plan.check(function(v) return C.op.sum(v, {}, false), C.op.amax(C.op.exp(v), {}, false) end, { x }, nil, 1e-5)
      local y = torch.randn(3, 20001):float()
      plan.check(function(v) return C.op.softmax(v, 1) end, { y }, nil, 1e-5)
      plan.check(function(v) return C.op.sum(v, { 0 }, false), C.op.sum(v, { 1 }, false), C.op.sum(v * 2, {}, false) end, { y }, nil, 1e-4)
      local z = torch.randn(1000, 37):float()
      local info = plan.check(function(v) return C.op.sum(C.op.exp(v), { 0 }, true) * 0.5, C.op.sum(v, {}, false) / 37 end, { z }, nil, 1e-4)
      assert.equal(1, info.kernels)
   end)
   it('softmax and log-softmax over any dimension with gradients', function()
      for dim = 0, 2 do
         for _, op in ipairs{ 'softmax', 'log_softmax' } do
            plan.check(grads(function(x) return (C.op.mul(C.op[op](x, dim), x)):sum() end), { torch.randn(4, 5, 6) }, nil, 1e-10, op .. dim)
         end
      end
   end)
   it('softmax cross-entropy forward and backward is two kernels: the mean needs all weights first', function()
      local y = torch.LongTensor(64):random(1, 10)
      local info = plan.check(function(x, t)
         local leaf = x:detach():requiresGrad(true)
         local loss = C.op.cross_entropy(leaf, t, nil, true, 1)
         return loss, torch.autograd.grad({ loss }, { leaf })[1]
      end, { torch.randn(64, 10):float(), y }, nil, 1e-5)
      assert.is_true(info.kernels <= 2)
      assert.equal(0, info.calls)
   end)
   it('layer norm, GELU, dropout, residual, forward and backward, is one kernel', function()
      local info = plan.check(function(x, w, b)
         local lx, lw, lb = x:detach():requiresGrad(true), w:detach():requiresGrad(true), b:detach():requiresGrad(true)
         local n = C.op.layer_norm(lx, lw, lb, 1, 1e-5)
         local out = lx + C.op.dropout(C.op.gelu(n), 0.1)
         local loss = C.op.mul(out, out):mean()
         local d = torch.autograd.grad({ loss }, { lx, lw, lb })
         return loss, d[1], d[2], d[3]
      end, { torch.randn(32, 256):float(), torch.rand(256):float(), torch.randn(256):float() }, nil, 1e-4)
      assert.equal(1, info.kernels)
      assert.equal(0, info.calls)
   end)
   it('batch norm forward and backward', function()
      plan.check(function(x, w, b)
         local lx, lw, lb = x:detach():requiresGrad(true), w:detach():requiresGrad(true), b:detach():requiresGrad(true)
         local n = C.op.batch_norm(lx, lw, lb, 1e-5)
         local d = torch.autograd.grad({ C.op.mul(n, C.op.tanh(n)):sum() }, { lx, lw, lb })
         return n, d[1], d[2], d[3]
      end, { torch.randn(6, 5, 4, 3), torch.rand(5), torch.randn(5) }, nil, 1e-8)
   end)
   it('along what memory runs across: columns instead of rows', function()
      for _, kind in ipairs { 'float', 'double' } do
         local x, y = torch.randn(5, 60, 40)[kind](torch.randn(5, 60, 40)), torch.randn(5, 60, 40)
         y = y[kind](y)
         local info = plan.check(function(a, b)
            local t = C.op.add(a, b):transpose(2, 3)
            local u = C.op.add(t, b:transpose(2, 3))
            return C.op.sum(u, { 0, 2 }, false), C.op.exp(u)
         end, { x, y }, nil, kind == 'float' and 1e-3 or 1e-10)
         assert.equal(1, info.kernels)
         plan.check(function(a) return C.op.amax(a:transpose(2, 3), { 2 }, true), C.op.sum(a:transpose(1, 3), { 1, 2 }, false) end, { x }, nil, 1e-3)
      end
   end)
end)
