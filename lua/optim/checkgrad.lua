-- Numerical check of gradients.

--- Compares opfunc's gradient at x with central differences of step eps (1e-7).
-- Returns the relative error (norm of the difference over norm of the sum), the gradient and the numerical one.
return function(opfunc, x, eps)
   eps = eps or 1e-7
   local _, dC = opfunc(x)
   dC = dC:clone()
   dC:resize(x:size())
   local estimate = dC.new(x:size()):zero()
   local flat = estimate:view(-1)
   local xs = x:view(-1)
   for i = 1, xs:size(1) do
      local old = xs[i]
      xs[i] = old + eps
      local C1 = opfunc(x)
      xs[i] = old - eps
      local C2 = opfunc(x)
      xs[i] = old
      flat[i] = (C1 - C2) / (2 * eps)
   end
   local diff = torch.norm(dC - estimate) / torch.norm(dC + estimate)
   return diff, dC, estimate
end
