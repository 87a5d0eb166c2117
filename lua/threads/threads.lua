-- Threads: a pool of threads that run jobs; what they return comes back to the state that made the pool.
-- Jobs wait in a channel, lane 0 for whichever thread is free, lane i for thread i; results wait in another. Both are bounded by the number of
-- threads, so that jobs far ahead of what takes their results stop.
local C = require 'relume.core'
local torch = require 'torch'

local Threads = {}
Threads.__index = Threads
local M = {}
local serialization = 'threads.serialize'

--- Which package saves and loads jobs of the pools made from now on: 'threads.serialize' copies, 'threads.sharedserialize' shares storages.
function M.serialization(name)
   if name then
      local package = require(name)
      if type(package) ~= 'table' or not package.save or not package.load then
         error(('[threads] serialization; got %s, need a package with save and load'):format(tostring(name)), 2)
      end
      serialization = name
   end
   return serialization
end

local main = [[
local path, cpath, id, jobs, results, serialization, kernels = ...
package.path, package.cpath = path, cpath
require('threads.worker')(id, jobs, results, serialization, kernels)
]]

-- A worker's kernels get its share of the processors.
local function kernelThreads(n) return math.max(1, math.floor(torch.getnumthreads() / n)) end

-- Closes the channels and waits for the threads; also when the pool is collected. Made last, so that it goes first.
local function guardian(list, jobs, results)
   local u = newproxy(true)
   getmetatable(u).__gc = function()
      jobs:close()
      results:close()
      for _, thread in ipairs(list) do thread:free() end
   end
   return u
end

--- Threads(n [, f1, f2, ...]): n threads; each runs every f with its number, which the global __threadid holds too. Errors in them are raised here.
local function new(_, n, ...)
   if type(n) ~= 'number' or n < 1 or n % 1 ~= 0 then error(('[threads] number of threads; got %s, need 1 or more'):format(tostring(n)), 3) end
   local self = setmetatable({N = n, jobs = C.channel(n, n + 1), results = C.channel(n, 1), list = {}, endcallbacks = {n = 0}, errors = {}, count = 0,
      mode = false, serialize = require(serialization)}, Threads)
   for i = 1, n do
      self.list[i] = C.thread(main, self.results, package.path, package.cpath, i, self.jobs:id(), self.results:id(), serialization, kernelThreads(n))
   end
   self.guardian = guardian(self.list, self.jobs, self.results)
   self:initialise(...)
   return self
end

function Threads:initialise(...)
   self:specific(true)
   for k = 1, select('#', ...) do
      local f = select(k, ...)
      if type(f) ~= 'function' then error(('[threads] initial function %d; got %s, need a function'):format(k, type(f)), 4) end
      for i = 1, self.N do self:addjob(i, f, nil, i) end
   end
   local ok, message = pcall(self.synchronize, self)
   if not ok then
      self:stop()
      error(message, 4)
   end
   self:specific(false)
end

local function running(self)
   if not self.jobs then error('[threads] pool; got one that was terminated', 3) end
end

--- With true, addjob's first argument is the number of the thread that is to run the job; with false any thread runs it.
function Threads:specific(on)
   running(self)
   if self.mode == on then return end
   if self:hasjob() then self:synchronize() end
   self.mode = on
end

local function noop() end

-- Lane, callback, endcallback of addjob's arguments.
local function target(self, id, ...)
   if not self.mode then return 0, id, ... end
   if type(id) ~= 'number' or not (id >= 1 and id <= self.N) then
      error(('[addjob] thread; got %s, need 1 to %d, as the pool is in specific mode'):format(tostring(id), self.N), 4)
   end
   return id, ...
end

local function put(self, lane, callback, endcallback, ...)
   if type(callback) ~= 'function' then error(('[addjob] job; got %s, need a function'):format(type(callback)), 3) end
   if endcallback ~= nil and type(endcallback) ~= 'function' then error(('[addjob] end callback; got %s, need a function'):format(type(endcallback)), 3) end
   self.count = self.count + 1
   local message = self.serialize.save {id = self.count, callback = callback, n = select('#', ...), ...}
   while self.jobs:isFull(lane) do self:dojob() end
   self.endcallbacks[self.count] = endcallback or noop
   self.endcallbacks.n = self.endcallbacks.n + 1
   self.jobs:push(message, lane)
end

--- addjob([thread,] callback [, endcallback [, ...]]): callback(...) runs in a thread, with copies of its upvalues; endcallback gets what it returned, here,
-- in dojob or synchronize. Runs finished jobs' end callbacks while there is no room.
function Threads:addjob(...)
   running(self)
   put(self, target(self, ...))
end

--- Runs the end callback of the next job that is done; waits for one. Errors are kept for synchronize; see haserror.
function Threads:dojob()
   running(self)
   if self.endcallbacks.n == 0 then error('[dojob] job; got none, need one that was added', 2) end
   local message = self.results:pop()
   if not message then error('[threads] a thread ended; its message is on stderr', 2) end
   local r = self.serialize.load(message)
   self.endcallbacks.n = self.endcallbacks.n - 1
   if not r.id then
      self.errors[#self.errors + 1] = ('[thread %d] %s'):format(r.thread, tostring(r[2]))
      return
   end
   local f = self.endcallbacks[r.id]
   self.endcallbacks[r.id] = nil
   if not r[1] then
      self.errors[#self.errors + 1] = ('[thread %d callback] %s'):format(r.thread, tostring(r[2]))
      return
   end
   local ok, err = xpcall(function() f(unpack(r, 2, r.n)) end, debug.traceback)
   if not ok then self.errors[#self.errors + 1] = ('[thread %d endcallback] %s'):format(r.thread, tostring(err)) end
end

--- True when there is room for a job (of that thread, in specific mode).
function Threads:acceptsjob(id)
   running(self)
   return not self.jobs:isFull((target(self, id or not self.mode)) or 0)
end

--- True while jobs are not done, or their end callbacks not run.
function Threads:hasjob()
   return self.endcallbacks.n > 0
end

--- True when a job or an end callback raised since the last synchronize.
function Threads:haserror()
   return #self.errors > 0
end
Threads.hasError = Threads.haserror

--- Runs all jobs and their end callbacks; raises what they raised, with tracebacks.
function Threads:synchronize()
   running(self)
   while self:hasjob() do self:dojob() end
   if #self.errors == 0 then return end
   local text = '\n' .. table.concat(self.errors, '\n')
   self.errors = {}
   error(text, 0)
end

-- Ends the threads.
function Threads:stop()
   getmetatable(self.guardian).__gc()
   self.jobs, self.results, self.list = nil, nil, {}
end

--- Synchronizes, then ends the threads; raises what jobs raised.
function Threads:terminate()
   if not self.jobs then return end
   local ok, message = pcall(self.synchronize, self)
   self:stop()
   if not ok then error(message, 0) end
end

return setmetatable(M, {__call = new})
