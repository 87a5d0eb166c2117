-- nn.hessian and nn.SparseJacobian. The layers get new methods for good, so this runs in a Lua state of its own.
require 'helper'

-- What a program prints.
local function run(text)
   local name = os.tmpname()
   local f = assert(io.open(name, 'w'))
   f:write(text)
   f:close()
   local pipe = io.popen('bin/th ' .. name .. ' 2>&1')
   local out = pipe:read '*a'
   pipe:close()
   os.remove(name)
   return out
end

describe('nn.hessian', function()
   it('gives the diagonals of linear layers, and of a network with getParameters', function()
      assert.equal('true\ntrue\ntrue\ntrue\n28\t28\t28\n', run [[
         require 'nn'
         nn.hessian.enable()
         nn.hessian.enable()
         local J = nn.Jacobian
         for _, case in ipairs {{nn.Linear(4, 3), torch.randn(4)}, {nn.Linear(4, 3), torch.randn(5, 4)},
               {nn.SpatialConvolution(2, 3, 2, 2), torch.randn(2, 4, 5)}} do
            local m, x = case[1], case[2]
            print(J.testDiagHessianInput(m, x) < 1e-9 and J.testDiagHessianWeight(m, x) < 1e-9 and J.testDiagHessianBias(m, x) < 1e-9)
         end
         local net, x = nn.Sequential():add(nn.Linear(3, 4)):add(nn.Tanh()):add(nn.Reshape(2, 2)):add(nn.Reshape(4)):add(nn.Linear(4, 2)), torch.randn(3)
         net:initDiagHessianParameters()
         net:forward(x)
         local mse, y = nn.MSECriterion(), torch.randn(2)
         local diag = mse:updateDiagHessianInput(net.output, y)
         local input = net:updateDiagHessianInput(x, diag):clone()
         net:accDiagHessianParameters(x, diag)
         local w1, w2, h = net:get(1).weight, net:get(5).weight, net:get(2).output
         local back = torch.cmul(w2, w2):t() * diag
         back:cmul((1 - torch.cmul(h, h)):pow(2))
         print((torch.cmul(w1, w1):t() * back - input):abs():max() < 1e-12)
         local w, g, hs = net:getParameters()
         print(w:nElement() + 2, g:nElement() + 2, hs:nElement() + 2)]])
   end)
end)

describe('nn.SparseJacobian', function()
   it('agrees with nn.SparseLinear', function()
      local m = nn.SparseLinear(6, 3, true)
      local x = torch.Tensor {{1, 0.5}, {2, 1}, {3, 2}, {4, 1}, {5, 1}, {6, 3}}
      assert.is_true(nn.SparseJacobian.testJacobian(m, x) < 1e-6)
      assert.is_true(nn.SparseJacobian.testJacobianParameters(m, x, m.weight, m.gradWeight) < 1e-6)
   end)
end)

describe('layers as the original has them', function()
   it('the gradient of a feature norm of zeros is 0', function()
      local m = nn.FeatureLPPooling(3, 1, 2)
      local x = torch.zeros(6)
      assert.same({0, 0, 0, 0}, m:forward(x):totable())
      assert.same({0, 0, 0, 0, 0, 0}, m:backward(x, torch.ones(4)):totable())
   end)

   it('a transposed volumetric convolution takes the size of its output from a second input', function()
      local m = nn.VolumetricFullConvolution(2, 3, 3, 3, 3, 2, 2, 2, 1, 1, 1)
      local y = m:forward {torch.randn(2, 3, 3, 3), torch.zeros(6, 5, 6)}
      assert.same({3, 6, 5, 6}, y:size():totable())
   end)

   it('torch.toc takes the time that torch.tic gave', function()
      local t = torch.tic()
      assert.is_true(t > 1e9)
      assert.is_true(torch.toc(t) >= 0 and torch.toc(t) < 60)
   end)
end)
