-- L-BFGS: limited-memory quasi-Newton (Nocedal, 1980; two-loop recursion), after the conventions of minFunc.

--- Up to maxIter iterations of L-BFGS.
-- config: maxIter (20), maxEval (1.25 maxIter), tolFun (1e-5), tolX (1e-9), nCorrection (100), learningRate (1), lineSearch (a function such
-- as optim.lswolfe; without one a fixed step), lineSearchOptions, verbose.
-- state: funcEval, nIter, old_dirs, old_stps, Hdiag, d, t, g_old, f_old. Returns x, the values of f, and the number of evaluations.
return function(opfunc, x, config, state)
   config = config or {}
   state = state or config
   local maxIter = tonumber(config.maxIter) or 20
   local maxEval = tonumber(config.maxEval) or maxIter * 1.25
   local tolFun = config.tolFun or 1e-5
   local tolX = config.tolX or 1e-9
   local nCorrection = config.nCorrection or 100
   local learningRate = config.learningRate or 1
   local lineSearch = config.lineSearch
   local lineSearchOptions = config.lineSearchOptions
   local say = config.verbose and function(...) print('<optim.lbfgs> ', ...) end or function() end

   state.funcEval = state.funcEval or 0
   state.nIter = state.nIter or 0

   local f, g = opfunc(x)
   local history = {f}
   local evals = 1
   state.funcEval = state.funcEval + 1
   if torch.abs(g):sum() <= tolFun then
      say('optimality condition below tolFun')
      return x, history
   end

   local S, Y = state.old_stps or {}, state.old_dirs or {} -- steps and gradient differences, oldest first
   state.old_stps, state.old_dirs = S, Y
   local Hdiag, d, t = state.Hdiag or 1, state.d, state.t
   local g_old, f_old = state.g_old, state.f_old

   local n = 0
   while n < maxIter do
      n = n + 1
      state.nIter = state.nIter + 1

      if state.nIter == 1 then
         d = g:clone():mul(-1)
         g_old = g:clone()
      else
         local y = g - g_old
         local s = d * t
         local ys = y * s
         if ys > 1e-10 then
            if #Y == nCorrection then
               table.remove(Y, 1)
               table.remove(S, 1)
            end
            Y[#Y + 1], S[#S + 1] = y, s
            Hdiag = ys / (y * y)
         end
         local alpha, rho = {}, {}
         d = g:clone():mul(-1)
         for i = #Y, 1, -1 do
            rho[i] = 1 / (Y[i] * S[i])
            alpha[i] = (S[i] * d) * rho[i]
            d:add(-alpha[i], Y[i])
         end
         d:mul(Hdiag)
         for i = 1, #Y do
            local beta = (Y[i] * d) * rho[i]
            d:add(alpha[i] - beta, S[i])
         end
         g_old:copy(g)
      end
      f_old = f

      local gtd = g * d
      if gtd > -tolX then
         say('can not make progress along direction')
         break
      end
      if state.nIter == 1 then
         t = math.min(1, 1 / torch.abs(g):sum()) * learningRate
      else
         t = learningRate
      end

      local used = 0
      if lineSearch then
         local xn
         f, g, xn, t, used = lineSearch(opfunc, x, t, d, f, g, gtd, lineSearchOptions)
         x:copy(xn)
         history[#history + 1] = f
      else
         x:add(t, d)
         if n ~= maxIter then
            f, g = opfunc(x)
            used = 1
            history[#history + 1] = f
         end
      end
      evals = evals + used
      state.funcEval = state.funcEval + used

      if n == maxIter then
         say('reached max number of iterations')
         break
      elseif evals >= maxEval then
         say('max nb of function evals')
         break
      elseif torch.abs(g):sum() <= tolFun then
         say('optimality condition below tolFun')
         break
      elseif torch.abs(d):mul(math.abs(t)):sum() <= tolX then
         say('step size below tolX')
         break
      elseif math.abs(f - f_old) < tolX then
         say('function value changing less than tolX')
         break
      end
   end

   state.Hdiag, state.d, state.t = Hdiag, d, t
   state.g_old, state.f_old = g_old, f_old
   return x, history, evals
end
