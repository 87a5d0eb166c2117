-- cmaes: covariance matrix adaptation evolution strategy (Hansen, "The CMA Evolution Strategy: A Tutorial"), without gradients
-- (opfunc, x -> best x, history of values, evaluations).

-- Constants of the strategy for n dimensions.
local function constants(n, popsize)
   local c = {n = n, lambda = popsize or 4 + math.floor(3 * math.log(n))}
   c.mu = math.max(math.floor(c.lambda / 2), 1)
   c.weights = torch.range(1, c.mu):double():log():mul(-1):add(math.log(c.mu + 0.5))
   c.weights:div(c.weights:sum())
   local m = 1 / c.weights:dot(c.weights) -- effective number of parents
   c.mueff = m
   c.cc = (4 + m / n) / (n + 4 + 2 * m / n)
   c.cs = (m + 2) / (n + m + 5)
   c.c1 = 2 / ((n + 1.3) ^ 2 + m)
   c.cmu = math.min(1 - c.c1, 2 * (m - 2 + 1 / m) / ((n + 2) ^ 2 + m))
   c.damps = 1 + 2 * math.max(0, math.sqrt((m - 1) / (n + 1)) - 1) + c.cs
   c.chi = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n)) -- expected length of a normal vector
   return c
end

-- Eigenvectors and square roots of the eigenvalues of the covariance.
local function decompose(s)
   s.C = (s.C + s.C:t()) / 2
   local e, v = torch.symeig(s.C, 'V')
   s.B, s.D = v, e:cmax(1e-20):sqrt()
end

local function draw(s, c)
   local z = torch.randn(c.n, c.lambda):double():cmul(s.D:view(-1, 1):expand(c.n, c.lambda))
   return torch.mm(s.B, z) -- steps as columns
end

-- Evolution paths, covariance and step size after the best steps (n x mu, best first).
local function adapt(s, c, steps, evaluations)
   local mean = torch.mv(steps, c.weights)
   s.mean:add(s.sigma, mean)
   local white = torch.mv(s.B, torch.cdiv(torch.mv(s.B:t(), mean), s.D))
   s.ps:mul(1 - c.cs):add(math.sqrt(c.cs * (2 - c.cs) * c.mueff), white)
   local norm = s.ps:norm()
   local stall = norm / math.sqrt(1 - (1 - c.cs) ^ (2 * evaluations / c.lambda)) / c.chi < 1.4 + 2 / (c.n + 1)
   s.pc:mul(1 - c.cc)
   if stall then s.pc:add(math.sqrt(c.cc * (2 - c.cc) * c.mueff), mean) end
   local lost = stall and 0 or c.c1 * c.cc * (2 - c.cc)
   s.C:mul(1 - c.c1 - c.cmu + lost)
   s.C:addr(c.c1, s.pc, s.pc)
   local weighted = torch.cmul(steps, c.weights:view(1, -1):expandAs(steps))
   s.C:addmm(c.cmu, weighted, steps:t())
   s.sigma = s.sigma * math.exp(math.min(1, c.cs / c.damps * (norm / c.chi - 1)))
end

--- optim.cmaes(opfunc, x [, config [, state]])
-- state (or config): sigma (0.5) first step size; maxEval (1000 n^2) evaluations; ftarget: stop below it; popsize (4 + 3 log n); verb_disp.
-- Returns the best x, its values (of the start, then after each generation), the number of evaluations.
return function(opfunc, x, config, state)
   state = state or config or {}
   local c = constants(x:nElement(), state.popsize)
   local n = c.n
   local limit, target = state.maxEval or 1000 * n * n, state.ftarget or -math.huge
   local s = {sigma = state.sigma or 0.5, mean = x:double():view(-1):clone(), ps = torch.DoubleTensor(n):zero(), pc = torch.DoubleTensor(n):zero(),
      C = torch.eye(n):double()}
   local point = x:clone()
   local function value(v) return (opfunc(point:copy(v:viewAs(point)))) end
   local best, where = value(s.mean), s.mean:clone()
   local history, evaluations, generation = {best}, 1, 0
   while evaluations < limit and best > target do
      decompose(s)
      local steps = draw(s, c)
      local f = torch.DoubleTensor(c.lambda)
      for i = 1, c.lambda do f[i] = value(steps:select(2, i) * s.sigma + s.mean) end
      evaluations, generation = evaluations + c.lambda, generation + 1
      local sorted, order = torch.sort(f)
      if sorted[1] < best then
         best = sorted[1]
         where:copy(steps:select(2, order[1])):mul(s.sigma):add(s.mean)
      end
      history[#history + 1] = best
      adapt(s, c, steps:index(2, order:narrow(1, 1, c.mu)), evaluations)
      if (state.verb_disp or 0) > 0 and generation % state.verb_disp == 0 then
         print(('cmaes %d: evaluations %d, f %g, sigma %g'):format(generation, evaluations, best, s.sigma))
      end
      if s.D:max() > 1e7 * s.D:min() or s.sigma * s.D:max() < 1e-12 then break end
   end
   state.sigma, state.evalCounter = s.sigma, evaluations
   x:copy(where:viewAs(x))
   return x, history, evaluations
end
