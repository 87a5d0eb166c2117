-- threads: pools of OS threads, each with a Lua state of its own (jobs, as functions with their upvalues -> results in the calling state).
-- The interface is that of torch/threads; a pool is also made by calling the package: require 'threads'(4, init).
local C = require 'relume.core'
require 'torch'

local threads = {}
package.loaded['threads'] = threads

--- Mutex([id]): a lock; lock(), unlock(), id(), free(). With the id of another one: that one, also in another thread.
threads.Mutex = C.mutex

--- Condition([id]): wait(mutex), signal(), id(), free().
threads.Condition = C.condition

local paths = 'package.path, package.cpath = ...\n'

--- Thread(code): runs Lua text in a new thread; free() waits for its end.
function threads.Thread(code)
   return C.thread(paths .. code, nil, package.path, package.cpath)
end

threads.safe = require 'threads.safe'
threads.Threads = require 'threads.threads'
threads.serialization = threads.Threads.serialization

return setmetatable(threads, {__call = function(_, ...) return threads.Threads(...) end})
