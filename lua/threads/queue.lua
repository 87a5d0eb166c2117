-- Queue: functions and their arguments for whoever takes them, in any thread (bounded; put waits for room, take waits for a job).
-- A queue that goes to another thread with a job is the same queue there.
local C = require 'relume.core'
local torch = require 'torch'

local Queue = torch.class 'threads.Queue'

--- Queue(size [, serialization]): at most `size` jobs wait in it. serialization: name of the package that saves and loads them.
function Queue:__init(size, serialization)
   if not size then return end -- as loading makes one
   self.serialization = serialization or 'threads.serialize'
   self.channel, self.serialize = C.channel(size, 1), require(self.serialization)
end

function Queue:write(file)
   file:writeObject(self.channel:id())
   file:writeObject(self.serialization)
end

function Queue:read(file)
   self.channel = C.channel(file:readObject())
   self.serialization = file:readObject()
   self.serialize = require(self.serialization)
end

--- Puts a job in; waits while the queue is full.
function Queue:addjob(callback, ...)
   return self.channel:push(self.serialize.save {callback = callback, n = select('#', ...), ...})
end

--- Takes the next job, waits for one, runs it and returns its results.
function Queue:dojob()
   local message = self.channel:pop()
   if not message then return end
   local job = self.serialize.load(message)
   return job.callback(unpack(job, 1, job.n))
end

function Queue:isfull() return self.channel:isFull() end
function Queue:isempty() return self.channel:isEmpty() end

return torch.getconstructortable 'threads.Queue'
