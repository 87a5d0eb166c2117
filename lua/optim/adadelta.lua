-- AdaDelta (Zeiler, 2012).

--- One step of AdaDelta.
-- config: rho (0.9), eps (1e-6), weightDecay (0). state: evalCounter, paramVariance, paramStd, delta, accDelta.
return function(opfunc, x, config, state)
   config = config or {}
   state = state or config
   local rho = config.rho or 0.9
   local eps = config.eps or 1e-6
   local wd = config.weightDecay or 0
   state.evalCounter = state.evalCounter or 0

   local fx, dfdx = opfunc(x)
   if wd ~= 0 then dfdx:add(wd, x) end

   if not state.paramVariance then
      state.paramVariance = x.new():resizeAs(dfdx):zero()
      state.paramStd = x.new():resizeAs(dfdx):zero()
      state.delta = x.new():resizeAs(dfdx):zero()
      state.accDelta = x.new():resizeAs(dfdx):zero()
   end
   state.paramVariance:mul(rho):addcmul(1 - rho, dfdx, dfdx)
   state.paramStd:copy(state.paramVariance):add(eps):sqrt()
   state.delta:copy(state.accDelta):add(eps):sqrt():cdiv(state.paramStd):cmul(dfdx)
   x:add(-1, state.delta)
   state.accDelta:mul(rho):addcmul(1 - rho, state.delta, state.delta)
   state.evalCounter = state.evalCounter + 1
   return x, {fx}
end
