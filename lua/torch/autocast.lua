-- Mixed precision: torch.autocast(dtype, f, ...) and torch.GradScaler. Weights stay Float; products and convolutions run in a half type.
local C = require 'relume.core'
local torch = C.torch

--- Runs f(...) with matrix products and convolutions of Float tensors computed in a half type ('Half', 'BFloat16' or a tensor type's name), their
-- results Float again, and returns its results. Gradients of what ran inside are computed in the half type too. nil turns it off.
rawset(torch, 'autocast', function(dtype, f, ...)
   local was = C.setAutocast(dtype)
   local results = {pcall(f, ...)}
   C.setAutocast(was)
   if not results[1] then error(results[2], 0) end
   return unpack(results, 2, table.maxn(results))
end)

local GradScaler = torch.class('torch.GradScaler')

--- Scales losses so that gradients in Half do not vanish. options: scale (65536), growth (2), backoff (0.5), interval (2000).
function GradScaler:__init(options)
   options = options or {}
   self.factor = options.scale or 65536
   self.growth, self.backoff, self.interval = options.growth or 2, options.backoff or 0.5, options.interval or 2000
   self.good = 0
end

--- The loss (or its gradient) times the scale.
function GradScaler:scale(loss) return loss * self.factor end

--- Divides gradients by the scale in place; false when one of them is not finite, and then the step is to be left out.
function GradScaler:unscale(grads)
   grads:div(self.factor)
   local sum = grads:sum()
   return sum == sum and sum ~= math.huge and sum ~= -math.huge
end

--- Unscales grads, runs step() when they are finite, and adapts the scale. Returns whether step ran.
function GradScaler:step(grads, step)
   local finite = self:unscale(grads)
   if finite then
      step()
      self.good = self.good + 1
      if self.good == self.interval then self.factor, self.good = self.factor * self.growth, 0 end
   else
      self.factor, self.good = self.factor * self.backoff, 0
   end
   return finite
end

return torch.autocast
