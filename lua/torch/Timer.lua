-- Timer: real, user and system seconds since it was started.
local C = require 'relume.core'
local torch = C.torch
local Timer = torch.class('torch.Timer')

local function now()
   local user, sys = C.cpuTimes()
   return {real = C.clock(), user = user, sys = sys}
end

--- A running timer.
function Timer:__init()
   self:reset()
end

--- Back to zero; a stopped timer stays stopped.
function Timer:reset()
   self.total = {real = 0, user = 0, sys = 0}
   if not self.stopped then self.start = now() end
   return self
end

local function add(self)
   local t = now()
   for k, v in pairs(t) do self.total[k] = self.total[k] + v - self.start[k] end
end

function Timer:stop()
   if not self.stopped then
      add(self)
      self.stopped = true
   end
   return self
end

function Timer:resume()
   if self.stopped then
      self.start = now()
      self.stopped = nil
   end
   return self
end

--- Table of seconds: real, user, sys.
function Timer:time()
   local t = {}
   local n = not self.stopped and now()
   for k, v in pairs(self.total) do t[k] = n and v + n[k] - self.start[k] or v end
   return t
end

function Timer:__tostring__()
   local t = self:time()
   return ('torch.Timer [status: %s] %.6f s real, %.6f s user, %.6f s sys'):format(self.stopped and 'stopped' or 'running', t.real, t.user, t.sys)
end

return Timer
