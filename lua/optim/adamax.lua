-- AdaMax: Adam with the infinity norm (Kingma and Ba, 2014, section 7.1).

--- One step of AdaMax.
-- config: learningRate (2e-3), beta1 (0.9), beta2 (0.999), epsilon (1e-38), weightDecay (0). state: t, m, u, max.
return function(opfunc, x, config, state)
   config = config or {}
   state = state or config
   local lr = config.learningRate or 0.002
   local beta1 = config.beta1 or 0.9
   local beta2 = config.beta2 or 0.999
   local eps = config.epsilon or 1e-38
   local wd = config.weightDecay or 0

   local fx, dfdx = opfunc(x)
   if wd ~= 0 then dfdx:add(wd, x) end

   state.t = state.t or 0
   state.m = state.m or x.new(dfdx:size()):zero()
   state.u = state.u or x.new(dfdx:size()):zero()
   state.max = state.max or x.new(dfdx:size()):zero()

   state.t = state.t + 1
   state.m:mul(beta1):add(1 - beta1, dfdx)
   state.max:copy(dfdx):abs():add(eps)
   state.u:mul(beta2):cmax(state.max)
   x:addcdiv(-lr / (1 - beta1 ^ state.t), state.m, state.u)
   return x, {fx}
end
