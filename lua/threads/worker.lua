-- worker: what a pool's thread runs: jobs from one channel, their results to another, until the first is closed.
local C = require 'relume.core'
local torch = require 'torch'

local function pack(...) return {n = select('#', ...), ...} end

-- {ok, results ... or message} of a job.
local function run(job)
   return pack(xpcall(function() return job.callback(unpack(job, 1, job.n)) end, function(e)
      if type(e) ~= 'string' then return e end
      return debug.traceback(e, 2)
   end))
end

-- Message for the main thread; one that says so when the results cannot be sent.
local function answer(serialize, r)
   local ok, message = pcall(serialize.save, r)
   if ok then return message end
   return serialize.save {id = r.id, thread = r.thread, n = 2, false, 'the results cannot be sent: ' .. tostring(message)}
end

--- Runs jobs for ever. id: number of this thread and of its lane; kernels: threads of its CPU kernels.
return function(id, jobs, results, serialization, kernels)
   _G.__threadid = id
   jobs, results = C.channel(jobs), C.channel(results)
   torch.setnumthreads(kernels)
   local serialize = require(serialization)
   while true do
      local message = jobs:pop(id)
      if not message then return end
      local ok, job = xpcall(serialize.load, debug.traceback, message)
      message = nil -- luacheck: ignore 311
      local r
      if ok then
         r = run(job)
         r.id = job.id
      else
         r = {n = 2, false, 'the job cannot be read: ' .. tostring(job)}
      end
      r.thread = id
      if not results:push(answer(serialize, r)) then return end
   end
end
