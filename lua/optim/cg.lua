-- Nonlinear conjugate gradients with the line search of Carl Rasmussen's minimize.m (Polak-Ribiere, Wolfe-Powell conditions).

local huge = math.huge
local function finite(v) return v == v and v ~= huge and v ~= -huge end

--- Up to maxIter line searches.
-- config: maxIter (20), maxEval (1.25 maxIter), verbose, and the constants rho (0.01), sig (0.5), int (0.1), ext (3), ratio (100).
-- Returns x, the values of f after each accepted search, and the number of evaluations.
return function(opfunc, x, config, state)
   config = config or {}
   local _ = state
   local rho, sig = config.rho or 0.01, config.sig or 0.5
   local int, ext, ratio = config.int or 0.1, config.ext or 3, config.ratio or 100
   local maxIter = config.maxIter or 20
   local maxEval = config.maxEval or maxIter * 1.25
   local red = 1

   local evals, n, failed = 0, 0, false
   local function eval(p)
      evals = evals + 1
      local f, g = opfunc(p)
      return f, g:clone()
   end

   local f0, df0 = eval(x)
   local fx = {f0}
   local s = df0:clone():mul(-1)
   local d0 = -(s * s)
   local z = red / (1 - d0)
   local x0 = x:clone()

   while n < maxIter and evals < maxEval do
      n = n + 1
      x0:copy(x)
      local F0, D0 = f0, df0
      local f1, df1, d1 = f0, df0, d0
      x:add(z, s)
      local f2, df2 = eval(x)
      local d2 = df2 * s
      local z1, f3, d3, z3 = z, f1, d1, -z
      local budget = math.min(maxIter, math.floor(maxEval - evals))
      local ok, limit = false, -1

      while true do
         while (f2 > f1 + z1 * rho * d1 or d2 > -sig * d1 or not finite(f2)) and budget > 0 do
            limit = z1
            local z2
            if f2 > f1 or not finite(f2) then
               z2 = z3 - 0.5 * d3 * z3 * z3 / (d3 * z3 + f2 - f3)
            else
               local a = 6 * (f2 - f3) / z3 + 3 * (d2 + d3)
               local b = 3 * (f3 - f2) - z3 * (d3 + 2 * d2)
               z2 = (math.sqrt(b * b - a * d2 * z3 * z3) - b) / a
            end
            if not finite(z2) then z2 = z3 / 2 end
            z2 = math.max(math.min(z2, int * z3), (1 - int) * z3)
            z1 = z1 + z2
            x:add(z2, s)
            f2, df2 = eval(x)
            budget = budget - 1
            d2 = df2 * s
            z3 = z3 - z2
         end
         if f2 > f1 + z1 * rho * d1 or d2 > -sig * d1 then
            break
         elseif d2 > sig * d1 then
            ok = true
            break
         elseif budget == 0 then
            break
         end
         local a = 6 * (f2 - f3) / z3 + 3 * (d2 + d3)
         local b = 3 * (f3 - f2) - z3 * (d3 + 2 * d2)
         local z2 = -d2 * z3 * z3 / (b + math.sqrt(b * b - a * d2 * z3 * z3))
         if not finite(z2) or z2 < 0 then
            z2 = limit < -0.5 and z1 * (ext - 1) or (limit - z1) / 2
         elseif limit > -0.5 and z2 + z1 > limit then
            z2 = (limit - z1) / 2
         elseif limit < -0.5 and z2 + z1 > z1 * ext then
            z2 = z1 * (ext - 1)
         elseif z2 < -z3 * int then
            z2 = -z3 * int
         elseif limit > -0.5 and z2 < (limit - z1) * (1 - int) then
            z2 = (limit - z1) * (1 - int)
         end
         f3, d3, z3 = f2, d2, -z2
         z1 = z1 + z2
         x:add(z2, s)
         f2, df2 = eval(x)
         budget = budget - 1
         d2 = df2 * s
      end

      if ok then
         f1 = f2
         fx[#fx + 1] = f1
         local beta = (df2 * df2 - df1 * df2) / (df1 * df1)
         s:mul(beta):add(-1, df2)
         df1 = df2
         d2 = df1 * s
         if d2 > 0 then
            s:copy(df1):mul(-1)
            d2 = -(s * s)
         end
         z = z1 * math.min(ratio, d1 / (d2 - 2.2250738585072014e-308))
         f0, df0, d0 = f1, df1, d2
         failed = false
      else
         x:copy(x0)
         f1, df1 = F0, D0
         if failed or n > maxIter then break end
         s:copy(df1):mul(-1)
         d1 = -(s * s)
         z = 1 / (1 - d1)
         f0, df0, d0 = f1, df1, d1
         failed = true
      end
   end
   return x, fx, evals
end
