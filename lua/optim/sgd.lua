-- Stochastic gradient descent with momentum, weight decay and learning rate decay.

--- One step of SGD.
-- config: learningRate (1e-3), learningRateDecay (0), weightDecay (0) or weightDecays (a vector), momentum (0), dampening (momentum),
-- nesterov (false), learningRates (a vector of individual rates).
-- state: evalCounter, dfdx (velocity), decayParameters, deltaParameters.
return function(opfunc, x, config, state)
   config = config or {}
   state = state or config
   local lr = config.learningRate or 1e-3
   local lrd = config.learningRateDecay or 0
   local wd = config.weightDecay or 0
   local mom = config.momentum or 0
   local damp = config.dampening or mom
   local nesterov = config.nesterov or false
   local lrs, wds = config.learningRates, config.weightDecays
   state.evalCounter = state.evalCounter or 0
   local nevals = state.evalCounter
   assert(not nesterov or (mom > 0 and damp == 0), 'Nesterov momentum requires a momentum and zero dampening')

   local fx, dfdx = opfunc(x)

   if wd ~= 0 then
      dfdx:add(wd, x)
   elseif wds then
      state.decayParameters = state.decayParameters or x.new():resizeAs(dfdx)
      state.decayParameters:copy(wds):cmul(x)
      dfdx:add(state.decayParameters)
   end

   if mom ~= 0 then
      if not state.dfdx then
         state.dfdx = dfdx.new():resizeAs(dfdx):copy(dfdx)
      else
         state.dfdx:mul(mom):add(1 - damp, dfdx)
      end
      if nesterov then
         dfdx:add(mom, state.dfdx)
      else
         dfdx = state.dfdx
      end
   end

   local clr = lr / (1 + nevals * lrd)
   if lrs then
      state.deltaParameters = state.deltaParameters or x.new():resizeAs(dfdx)
      state.deltaParameters:copy(lrs):cmul(dfdx)
      x:add(-clr, state.deltaParameters)
   else
      x:add(-clr, dfdx)
   end
   state.evalCounter = nevals + 1
   return x, {fx}
end
