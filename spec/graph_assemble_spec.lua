-- Assemble: sums of slices' gradients become a cat where the slices lie side by side, and stay sums where they meet.
local C = require 'relume.core'
local plan = require 'support.plan'

local function part(x, dim, start) return C.op.slice_grad(x, { 6, 4 }, dim, start, 1) end
local function t(...) return torch.randn(...) end

-- Counts of the ops of f's graph after all passes; f's results compared with the interpreter.
local function ops(f, tensors)
   plan.check(f, tensors, nil, 1e-12)
   return plan.graph(f, tensors):passes():ops()
end

describe('assemble', function()
   it('lays pieces side by side, whatever their order', function()
      local o = ops(function(a, b, c) return (part(a, 0, 3) + part(b, 0, 0)) + part(c, 0, 2) end, { t(3, 4), t(2, 4), t(1, 4) })
      assert.same({ nil, 1, nil }, { o.slice_grad, o.cat, o.add })
      o = ops(function(a, b) return torch.exp(part(a, 1, 2) + part(b, 1, 0)) end, { t(6, 2), t(6, 2) })
      assert.same({ nil, 1, nil }, { o.slice_grad, o.cat, o.add })
   end)
   it('fills gaps with zeros and adds what is no piece', function()
      local o = ops(function(a, b, x) return part(a, 0, 1) + (x + part(b, 0, 4)) end, { t(2, 4), t(1, 4), t(6, 4) })
      assert.same({ nil, 1, 1 }, { o.slice_grad, o.cat, o.add })
   end)
   it('leaves pieces that meet, that lie along another dimension, or that stand alone', function()
      local o = ops(function(a, b) return part(a, 0, 0) + part(b, 0, 1) end, { t(2, 4), t(2, 4) })
      assert.same({ 2, nil, 1 }, { o.slice_grad, o.cat, o.add })
      o = ops(function(a, b) return part(a, 0, 0) + part(b, 1, 1) end, { t(2, 4), t(6, 2) })
      assert.same({ 2, nil, 1 }, { o.slice_grad, o.cat, o.add })
      o = ops(function(a) return part(a, 0, 0) + part(a, 0, 0) end, { t(2, 4) })
      assert.is_nil(o.cat)
      o = ops(function(a, b) return C.op.slice_grad(a, { 6, 4 }, 0, 0, 2) + part(b, 0, 1) end, { t(2, 4), t(1, 4) })
      assert.same({ 2, nil, 1 }, { o.slice_grad, o.cat, o.add })
   end)
   it('keeps sums that others read', function()
      local o = ops(function(a, b, c)
         local s = part(a, 0, 0) + part(b, 0, 2)
         return s, s + part(c, 0, 4)
      end, { t(2, 4), t(2, 4), t(2, 4) })
      assert.same({ 1, 1, 1 }, { o.slice_grad, o.cat, o.add })
   end)
   it('makes the gradient of a recurrent layer linear in its steps', function()
      local function f(x, w)
         local all = x:detach():requiresGrad(true)
         local h
         for i = 0, 7 do
            local s = torch.tanh(C.op.select(all, 0, i))
            h = h and torch.tanh(torch.mm(h, w) + s) or s
         end
         return torch.autograd.grad({ h:sum() }, { all })[1]
      end
      local o = ops(f, { t(8, 3, 5), t(5, 5):mul(0.3) })
      assert.same({ nil, 1 }, { o.slice_grad, o.cat })
   end)
end)
