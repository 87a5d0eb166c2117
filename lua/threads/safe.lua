-- safe: a function that one thread at a time runs (function, mutex -> function).
local C = require 'relume.core'

local alive = setmetatable({}, {__mode = 'k'}) -- function -> its mutex, which goes with it

--- safe(f [, mutex]): f under a lock, which is let go when f raises as well. Serialised, it locks the same mutex in every thread.
return function(f, mutex)
   mutex = mutex or C.mutex()
   local id = mutex:id()
   local function g(...)
      local m = require('relume.core').mutex(id)
      local function unlock(ok, ...)
         m:unlock()
         m:free()
         if not ok then error((...), 0) end
         return ...
      end
      m:lock()
      return unlock(pcall(f, ...))
   end
   alive[g] = mutex
   return g
end
