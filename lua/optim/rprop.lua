-- Rprop (Riedmiller and Braun, 1993; the variant that drops the gradient after a sign change).

--- niter steps of Rprop.
-- config: stepsize (0.1), etaplus (1.2), etaminus (0.5), stepsizemax (50), stepsizemin (1e-6), niter (1). state: delta, stepsize, sign.
return function(opfunc, x, config, state)
   config = config or {}
   state = state or config
   local stepsize = config.stepsize or 0.1
   local etaplus = config.etaplus or 1.2
   local etaminus = config.etaminus or 0.5
   local largest = config.stepsizemax or 50
   local smallest = config.stepsizemin or 1e-06

   local hfx = {}
   for i = 1, config.niter or 1 do
      local fx, dfdx = opfunc(x)
      if not state.delta then
         state.delta = dfdx.new(dfdx:size()):zero()
         state.stepsize = dfdx.new(dfdx:size()):fill(stepsize)
         state.sign = dfdx.new(dfdx:size())
      end
      local agree = torch.cmul(dfdx, state.delta)
      local turned = agree:lt(0)
      state.sign:fill(1)
      state.sign:maskedFill(agree:gt(0), etaplus)
      state.sign:maskedFill(turned, etaminus)
      state.stepsize:cmul(state.sign):clamp(smallest, largest)
      dfdx:maskedFill(turned, 0)
      state.sign:copy(dfdx):sign()
      x:addcmul(-1, state.sign, state.stepsize)
      state.delta:copy(dfdx)
      hfx[i] = fx
   end
   return x, hfx
end
