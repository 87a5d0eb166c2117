-- Adam (Kingma and Ba, 2014).

--- One step of Adam.
-- config: learningRate (1e-3), learningRateDecay (0), beta1 (0.9), beta2 (0.999), epsilon (1e-8), weightDecay (0, added to the gradient).
-- state: t, m, v, denom.
return function(opfunc, x, config, state)
   config = config or {}
   state = state or config
   local lr = config.learningRate or 0.001
   local lrd = config.learningRateDecay or 0
   local beta1 = config.beta1 or 0.9
   local beta2 = config.beta2 or 0.999
   local eps = config.epsilon or 1e-8
   local wd = config.weightDecay or 0

   local fx, dfdx = opfunc(x)
   if wd ~= 0 then dfdx:add(wd, x) end

   state.t = state.t or 0
   state.m = state.m or x.new(dfdx:size()):zero()
   state.v = state.v or x.new(dfdx:size()):zero()
   state.denom = state.denom or x.new(dfdx:size()):zero()

   local clr = lr / (1 + state.t * lrd)
   local t = state.t + 1
   state.t = t
   state.m:mul(beta1):add(1 - beta1, dfdx)
   state.v:mul(beta2):addcmul(1 - beta2, dfdx, dfdx)
   state.denom:copy(state.v):sqrt():add(eps)
   local step = clr * math.sqrt(1 - beta2 ^ t) / (1 - beta1 ^ t)
   x:addcdiv(-step, state.m, state.denom)
   return x, {fx}
end
