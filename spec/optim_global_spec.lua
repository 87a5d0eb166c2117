-- Optimisers without a gradient step: differential evolution, CMA-ES, FISTA.

local function rosenbrock(x)
   local a, b = x:narrow(1, 1, x:size(1) - 1), x:narrow(1, 2, x:size(1) - 1)
   return torch.pow(b - torch.pow(a, 2), 2):mul(100):add(torch.pow(1 - a, 2)):sum()
end

describe('search', function()
   it('de finds the minimum of a valley', function()
      torch.manualSeed(3)
      local x = torch.zeros(2)
      local config = {popsize = 30, scaleFactor = 0.5, crossoverRate = 0.9, maxFEs = 3000}
      local best, values = optim.de(rosenbrock, x, config)
      assert.equal(x, best)
      assert.equal(3000, #values)
      assert.is_true(values[3000] <= values[1])
      assert.is_true(rosenbrock(x) < 1e-3, rosenbrock(x))
      assert.near(values[3000], rosenbrock(x), 1e-12)
      assert.equal(3000, config.evalCounter)
   end)

   it('cmaes finds it in ten dimensions', function()
      torch.manualSeed(4)
      local x = torch.zeros(10)
      local best, values, n = optim.cmaes(rosenbrock, x, {maxEval = 10000, sigma = 0.5, ftarget = 1e-8})
      assert.equal(x, best)
      assert.is_true(rosenbrock(x) < 1e-3, rosenbrock(x))
      assert.equal(9, values[1])
      assert.near(values[#values], rosenbrock(x), 1e-12)
      assert.is_true(n <= 10000 + 10)
   end)

   it('cmaes keeps the type and shape of x', function()
      torch.manualSeed(5)
      local x = torch.FloatTensor(2, 2):fill(3)
      optim.cmaes(function(p) assert.equal('torch.FloatTensor', p:type()) return p:norm() end, x, {maxEval = 800, sigma = 1})
      assert.same({2, 2}, x:size():totable())
      assert.is_true(x:norm() < 0.05, x:norm())
   end)
end)

describe('FistaLS', function()
   -- lasso with an identity design: the solution is soft thresholding
   local b = torch.Tensor{3, -0.5, 1.5, 0.2}
   local function f(x, mode)
      local d = x - b
      return d:dot(d) / 2, mode == 'dx' and d or nil
   end
   local function g(x) return torch.abs(x):sum() end
   local function pl(x, L) x:copy(torch.cmul(torch.sign(x), torch.abs(x):add(-1 / L):cmax(0))) end

   it('solves a lasso', function()
      for _, fast in ipairs{true, false} do
         local params = {L = 0.1, maxiter = 200, errthres = 1e-12, doFistaUpdate = fast}
         local x, history = optim.FistaLS(f, g, pl, torch.zeros(4), params)
         assert.is_true((x - torch.Tensor{2, 0, 0.5, 0}):abs():max() < 1e-5, tostring(x))
         assert.is_true(params.L >= 1 / 1.5)
         assert.is_true(history[#history].F <= history[1].F)
         assert.is_true(history[1].nline > 0)
      end
   end)
end)
