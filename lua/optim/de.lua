-- de: differential evolution (Storn and Price, 1997), without gradients (opfunc, x -> best x, history).

-- Three different members of the population, none of them i.
local function three(n, i)
   local a, b, c
   repeat a = torch.random(n) until a ~= i
   repeat b = torch.random(n) until b ~= i and b ~= a
   repeat c = torch.random(n) until c ~= i and c ~= a and c ~= b
   return a, b, c
end

-- A candidate for member i: its coordinates, some of them (one at least) replaced by a + factor (b - c).
local function candidate(population, i, factor, rate)
   local a, b, c = three(population:size(1), i)
   local n = population:size(2)
   local mutant = population[b]:clone():csub(population[c]):mul(factor):add(population[a])
   local keep = torch.rand(n):ge(rate)
   keep[torch.random(n)] = 0
   mutant[keep] = population[i][keep]
   return mutant
end

--- optim.de(opfunc, x [, config [, state]]): population around x, every member against a mixture of three others.
-- config.popsize (number of parameters), scaleFactor (1), crossoverRate (0.2), maxFEs (popsize * 1000): evaluations of opfunc.
-- Returns the best x and the table of its values, one for each evaluation.
return function(opfunc, x, config, state)
   config = config or {}
   state = state or config
   local size = math.max(config.popsize or x:size(1), 4)
   local limit = config.maxFEs or size * 1000
   local factor, rate = config.scaleFactor or 1, config.crossoverRate or 0.2
   local population = x.new(size, x:nElement()):uniform(-1, 1):add(x:view(1, -1):expand(size, x:nElement()))
   population[1]:copy(x)
   local values, history, best = {}, {}, nil
   local function value(v) return (opfunc(v:viewAs(x))) end
   local function note(f, i)
      values[i] = f
      if not best or f < values[best] then best = i end
      history[#history + 1] = values[best]
   end
   for i = 1, size do note(value(population[i]), i) end
   while #history < limit do
      for i = 1, size do
         if #history >= limit then break end
         local trial = candidate(population, i, factor, rate)
         local f = value(trial)
         if f <= values[i] then
            population[i]:copy(trial)
            note(f, i)
         else
            history[#history + 1] = values[best]
         end
      end
   end
   x:copy(population[best])
   state.evalCounter = (state.evalCounter or 0) + #history
   return x, history
end
