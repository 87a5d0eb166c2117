-- AdamW: Adam with decoupled weight decay (Loshchilov and Hutter, 2017).

--- One step of AdamW.
-- config: learningRate (1e-3), learningRateDecay (0), beta1 (0.9), beta2 (0.999), epsilon (1e-8, added after bias correction),
-- weightDecay (0.01, shrinks x itself).
-- state: t, m, v.
return function(opfunc, x, config, state)
   config = config or {}
   state = state or config
   local lr = config.learningRate or 0.001
   local lrd = config.learningRateDecay or 0
   local beta1 = config.beta1 or 0.9
   local beta2 = config.beta2 or 0.999
   local eps = config.epsilon or 1e-8
   local wd = config.weightDecay or 0.01

   local fx, dfdx = opfunc(x)

   state.t = state.t or 0
   state.m = state.m or x.new(dfdx:size()):zero()
   state.v = state.v or x.new(dfdx:size()):zero()

   local clr = lr / (1 + state.t * lrd)
   local t = state.t + 1
   state.t = t
   if wd ~= 0 then x:mul(1 - clr * wd) end
   state.m:mul(beta1):add(1 - beta1, dfdx)
   state.v:mul(beta2):addcmul(1 - beta2, dfdx, dfdx)
   local denom = torch.sqrt(state.v):div(math.sqrt(1 - beta2 ^ t)):add(eps)
   x:addcdiv(-clr / (1 - beta1 ^ t), state.m, denom)
   return x, {fx}
end
