-- Whole training steps recorded by hand: forward, tape backward, flat update, in one graph.
local C = require 'relume.core'
local graph = require 'support.graph'

local function lcg(seed, ...)
   local t = torch.DoubleTensor(...)
   local p = t:data()
   for i = 0, t:nElement() - 1 do
      seed = (seed * 1103515245 + 12345) % 2147483648
      p[i] = seed / 2147483648 - 0.5
   end
   return t
end

-- flat, gflat, x, target; weights are windows of flat, gradients of gflat.
local shapes = { { 8, 5 }, { 8 }, { 3, 8 }, { 3 } }
local function make()
   local n = 8 * 5 + 8 + 3 * 8 + 3
   local flat, gflat = lcg(1, n), lcg(2, n)
   local list = { flat, gflat, lcg(3, 6, 5), torch.LongTensor { 0, 1, 2, 0, 1, 2 } }
   for _, buffer in ipairs { flat, gflat } do
      local at = 1
      for _, s in ipairs(shapes) do
         local k = s[1] * (s[2] or 1)
         list[#list + 1] = buffer:narrow(1, at, k):view(unpack(s))
         at = at + k
      end
   end
   return list
end

local function step(flat, gflat, x, y, w1, b1, w2, b2, g1, h1, g2, h2, lr)
   local p = {}
   for i, w in ipairs { w1, b1, w2, b2 } do p[i] = w:detach():requiresGrad(true) end
   local hidden = torch.tanh(C.op.linear(x, p[1], p[2]))
   local loss = C.op.cross_entropy(C.op.linear(hidden, p[3], p[4]), y)
   gflat:zero()
   local grads = torch.autograd.grad({ loss }, p)
   for i, g in ipairs { g1, h1, g2, h2 } do g:add(grads[i]) end
   flat:add(torch.mul(gflat, -lr))
   return loss
end

describe('whole step', function()
   it('becomes pure code without write chains', function()
      local stages = graph.check(step, make, { 0.1 }, 1e-10)
      local o = stages[#stages][2]:ops()
      assert.is_nil(o.scatter_window)
      assert.is_nil(o.write)
      assert.is_nil(o.softmax)
      assert.equal(1, o.cat)
   end)

   it('keeps momentum in its buffer', function()
      graph.check(function(flat, gflat, velocity, lr)
         velocity:mul(0.9):add(gflat)
         flat:add(torch.mul(velocity, -lr))
         return flat:narrow(1, 2, 3) * 1
      end, function() return { lcg(1, 20), lcg(2, 20), lcg(3, 20) } end, { 0.01 })
   end)

   it('draws dropout masks like eager', function()
      graph.check(function(x)
         local y = C.op.dropout(x, 0.3)
         local z = C.op.dropout(y * 2, 0.6)
         return y, z + C.op.rand({ 4, 5 }, 'Double')
      end, function() return { lcg(1, 4, 5) } end)
   end)

   it('normalises over a batch', function()
      graph.check(function(x, w, b, running)
         local q = w:detach():requiresGrad(true)
         local y, mean, var = C.op.batch_norm(x, q, b)
         running:mul(0.9):add(torch.mul(mean, 0.1))
         local loss = C.op.sum(torch.cmul(y, y), {}, false)
         return loss, torch.autograd.grad({ loss }, { q })[1], var
      end, function() return { lcg(1, 6, 4), lcg(2, 4), lcg(3, 4), lcg(4, 4) } end, nil, 1e-10)
   end)

   it('convolves and pools', function()
      graph.check(function(x, w, b)
         local q = w:detach():requiresGrad(true)
         local y = C.op.relu(C.op.conv2d(x, q, b, { 1, 1 }, { 1, 1 }, { 1, 1 }))
         local p = C.op.max_pool2d(y, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 })
         local loss = C.op.mean(p, {}, false)
         return loss, torch.autograd.grad({ loss }, { q })[1]
      end, function() return { lcg(1, 2, 3, 8, 8), lcg(2, 4, 3, 3, 3), lcg(3, 4) } end, nil, 1e-10)
   end)
end)
