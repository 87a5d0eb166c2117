-- nnx: the layers of that rock, values and gradients.
require 'helper'
require 'nnx'

local function near(m, x)
   assert.is_true(nn.Jacobian.testJacobian(m, x) < 1e-6)
   if m.weight then
      assert.is_true(nn.Jacobian.testJacobianParameters(m, x, m.weight, m.gradWeight) < 1e-6)
      assert.is_true(nn.Jacobian.testJacobianParameters(m, x, m.bias, m.gradBias) < 1e-6)
   end
end

describe('nnx', function()
   it('linear layers at every pixel', function()
      local m, x = nn.SpatialLinear(3, 2), torch.randn(3, 4, 5)
      local y = m:forward(x)
      assert.same({2, 4, 5}, y:size():totable())
      local want = m.weight * x[{{}, 2, 3}] + m.bias
      assert.is_true((y[{{}, 2, 3}] - want):abs():max() < 1e-12)
      assert.same({6, 2, 4, 5}, m:forward(torch.randn(6, 3, 4, 5)):size():totable())
      near(m, x)
      local c = nn.SpatialClassifier(nn.Sequential():add(nn.Linear(3, 2)))
      c:add(nn.LogSoftMax())
      y = c:forward(x)
      assert.is_true((y[{{}, 2, 3}] - c.classifier:forward(x[{{}, 2, 3}])):abs():max() < 1e-12)
      c:forward(x)
      near(c, x)
      assert.has_error(function() c:forward(torch.randn(3)) end)
   end)

   it('resampling and padding', function()
      local m = nn.SpatialReSampling {owidth = 3, oheight = 1}
      assert.same({{{1, 2, 3}}}, m:forward(torch.Tensor {{{1, 3}}}):totable())
      near(nn.SpatialReSampling {rwidth = 2, rheight = 1.5}, torch.randn(2, 4, 5))
      local up = nn.SpatialUpSampling {dW = 2, dH = 1}
      assert.same({{{1, 1, 3, 3}}}, up:forward(torch.Tensor {{{1, 3}}}):totable())
      near(up, torch.randn(2, 3, 4))
      local pad = nn.SpatialPadding(1, -1, 0, 1, 2, 3, 9)
      assert.same({{{9, 1}, {9, 9}}}, pad:forward(torch.Tensor {{{1, 3}}}):totable())
      near(pad, torch.randn(2, 3, 4))
      assert.same({-1}, nn.Minus():forward(torch.ones(1)):totable())
   end)

   it('an element that goes around some modules', function()
      local push = nn.PushTable(2)
      local net = nn.Sequential():add(push):add(nn.ParallelTable():add(nn.MulConstant(10)):add(nn.Identity())):add(push:pull(1)):add(nn.CMulTable())
      local a, b, c = torch.randn(3), torch.randn(3), torch.randn(3)
      local y = net:forward {a, b, c}
      assert.is_true((y - torch.cmul(a * 10, b):cmul(c)):abs():max() < 1e-12)
      local g = net:backward({a, b, c}, torch.ones(3))
      assert.is_true((g[1] - torch.cmul(b, c) * 10):abs():max() < 1e-12)
      assert.is_true((g[2] - torch.cmul(a, c) * 10):abs():max() < 1e-12)
      assert.is_true((g[3] - torch.cmul(a, b) * 10):abs():max() < 1e-12)
   end)

   it('functions as a module', function()
      local m = nn.FunctionWrapper(function(self) self.factor = 3 end, function(self, x) return x * self.factor end,
         function(self, _, dy) return dy * self.factor end)
      near(m, torch.randn(4))
   end)

   it('a tree of softmaxes is a distribution over its leaves', function()
      local tree = {[1] = torch.IntTensor {2, 3}, [2] = torch.IntTensor {4, 5, 6}, [3] = torch.IntTensor {7, 8}}
      local m, x, sum = nn.SoftMaxTree(3, tree, 1), torch.randn(1, 3), 0
      for leaf = 4, 8 do sum = sum + math.exp(m:forward {x, torch.IntTensor {leaf}}[1]) end
      assert.near(1, sum, 1e-12)
      local inputs, leaves, loss = torch.randn(4, 3), torch.IntTensor {4, 8, 5, 7}, nn.TreeNLLCriterion()
      local function value() return loss:forward(m:forward {inputs, leaves}) end
      m:zeroGradParameters()
      value()
      local dx = m:backward({inputs, leaves}, loss:backward(m.output))[1]:clone()
      local n = 0
      for _ in pairs((m:parameters())) do n = n + 1 end
      assert.equal(6, n)
      for _, pair in ipairs {{inputs, dx}, {m.weight, m.gradWeight}, {m.bias, m.gradBias}} do
         local t, g = pair[1]:view(-1), pair[2]:view(-1)
         for i = 1, t:size(1) do
            local was = t[i]
            t[i] = was + 1e-5
            local above = value()
            t[i] = was - 1e-5
            local below = value()
            t[i] = was
            assert.near((above - below) / 2e-5, g[i], 1e-8)
         end
      end
      assert.equal('torch.IntTensor', m:float().childIds:type())
      assert.equal('torch.FloatTensor', m:forward {inputs:float(), leaves}:type())
   end)
end)
