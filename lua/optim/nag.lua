-- Nesterov's accelerated gradient (Sutskever et al., 2013): the gradient is taken after the momentum step.

--- One step of NAG.
-- config: learningRate (1e-3), learningRateDecay (0), weightDecay (0) or weightDecays, momentum (0.9), learningRates.
-- state: evalCounter, dfdx (velocity), decayParameters, deltaParameters.
return function(opfunc, x, config, state)
   config = config or {}
   state = state or config
   local lr = config.learningRate or 1e-3
   local lrd = config.learningRateDecay or 0
   local wd = config.weightDecay or 0
   local mom = config.momentum or 0.9
   local lrs, wds = config.learningRates, config.weightDecays
   state.evalCounter = state.evalCounter or 0
   local nevals = state.evalCounter
   if mom <= 0 then error 'Momentum must be positive for Nesterov Accelerated Gradient' end

   if state.dfdx then x:add(mom, state.dfdx) end
   local fx, dfdx = opfunc(x)

   if wd ~= 0 then
      dfdx:add(wd, x)
   elseif wds then
      state.decayParameters = state.decayParameters or x.new():resizeAs(dfdx)
      state.decayParameters:copy(wds):cmul(x)
      dfdx:add(state.decayParameters)
   end

   local clr = lr / (1 + nevals * lrd)
   if not state.dfdx then
      state.dfdx = dfdx.new():resizeAs(dfdx):zero()
   else
      state.dfdx:mul(mom)
   end
   local step = dfdx
   if lrs then
      state.deltaParameters = state.deltaParameters or x.new():resizeAs(dfdx)
      step = state.deltaParameters:copy(lrs):cmul(dfdx)
   end
   x:add(-clr, step)
   state.dfdx:add(-clr, step)
   state.evalCounter = nevals + 1
   return x, {fx}
end
