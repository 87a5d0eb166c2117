-- AdaGrad (Duchi, Hazan and Singer, 2011).

--- One step of AdaGrad.
-- config: learningRate (1e-3), learningRateDecay (0), weightDecay (0). state: evalCounter, paramVariance, paramStd.
return function(opfunc, x, config, state)
   config = config or {}
   state = state or config
   local lr = config.learningRate or 1e-3
   local lrd = config.learningRateDecay or 0
   local wd = config.weightDecay or 0
   state.evalCounter = state.evalCounter or 0
   local nevals = state.evalCounter

   local fx, dfdx = opfunc(x)
   if wd ~= 0 then dfdx:add(wd, x) end

   local clr = lr / (1 + nevals * lrd)
   if not state.paramVariance then
      state.paramVariance = x.new():resizeAs(dfdx):zero()
      state.paramStd = x.new():resizeAs(dfdx)
   end
   state.paramVariance:addcmul(1, dfdx, dfdx)
   state.paramStd:copy(state.paramVariance):sqrt():add(1e-10)
   x:addcdiv(-clr, dfdx, state.paramStd)
   state.evalCounter = nevals + 1
   return x, {fx}
end
