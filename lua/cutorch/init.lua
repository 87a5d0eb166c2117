-- cutorch: CUDA tensors. Requiring it makes torch.CudaTensor, torch.CudaDoubleTensor ... and x:cuda(); a machine without a GPU gets an error
-- that names what is missing.
local C = require 'relume.core'
local torch = require 'torch'
local cuda = C.cuda

local n, why = cuda.count()
if n == 0 then error(why, 0) end

for name, constructor in pairs(cuda.types()) do torch._core_type(name, constructor) end

local cutorch = {}

--- Number of GPUs.
function cutorch.getDeviceCount() return (cuda.count()) end

--- Current GPU, from 1.
cutorch.getDevice = cuda.getDevice

--- Makes a GPU the current one of this thread.
cutorch.setDevice = cuda.setDevice

--- Runs f(...) with another current GPU and returns its results.
function cutorch.withDevice(device, f, ...)
   local before = cutorch.getDevice()
   cutorch.setDevice(device)
   local r = {pcall(f, ...)}
   cutorch.setDevice(before)
   if not r[1] then error(r[2], 0) end
   return unpack(r, 2, table.maxn(r))
end

--- Waits for all work of the current GPU; an error of an earlier kernel is raised here with its op.
cutorch.synchronize = cuda.synchronize
cutorch.synchronizeAll = cuda.synchronize

-- Streams: work of one runs in order, that of several side by side. Stream 0 is the one in use at first; memory belongs to the stream that was current when it
-- was made, so what another one uses it waits for.

--- Makes streams 1 to n of the current GPU exist.
cutorch.reserveStreams = cuda.reserveStreams

--- How many streams there are beside stream 0.
cutorch.getNumStreams = cuda.getNumStreams

--- Makes a stream of the current GPU this thread's current one.
cutorch.setStream = cuda.setStream

--- Current stream of the current GPU.
cutorch.getStream = cuda.getStream

--- Goes back to stream 0.
function cutorch.setDefaultStream() cuda.setStream(0) end

--- Runs f(...) with another current stream and returns its results.
function cutorch.withStream(stream, f, ...)
   local before = cuda.getStream()
   cuda.setStream(stream)
   local r = {pcall(f, ...)}
   cuda.setStream(before)
   if not r[1] then error(r[2], 0) end
   return unpack(r, 2, table.maxn(r))
end

--- Waits on the host for the work that a stream has been given.
cutorch.streamSynchronize = cuda.streamSynchronize

--- What `waiting` is given from now on runs after what the streams of a list have been given.
function cutorch.streamWaitFor(waiting, streams)
   for _, s in ipairs(streams) do cuda.streamWait(waiting, s) end
end

--- Every stream of a list waits for every other one.
function cutorch.streamBarrier(streams)
   local first = streams[1]
   for i = 2, #streams do cuda.streamWait(first, streams[i]) end
   for i = 2, #streams do cuda.streamWait(streams[i], first) end
end

--- An event marks a place in the work of a stream: e:record() on the current stream, e:wait() lets the current stream wait for it, e:synchronize() the host;
-- first:elapsed(second) is the time between two that have passed, in milliseconds.
cutorch.Event = cuda.event

-- An event behind what a stream of a GPU has been given.
local function mark(device, stream)
   return cutorch.withDevice(device, function()
      return cutorch.withStream(stream, function() return cuda.event():record() end)
   end)
end
local function await(device, stream, events)
   cutorch.withDevice(device, function()
      cutorch.withStream(stream, function()
         for _, e in ipairs(events) do e:wait() end
      end)
   end)
end

--- As streamWaitFor over GPUs: streams is {[device] = {stream, ...}, ...}.
function cutorch.streamWaitForMultiDevice(device, stream, streams)
   local events = {}
   for d, list in pairs(streams) do
      for _, s in ipairs(list) do events[#events + 1] = mark(d, s) end
   end
   await(device, stream, events)
end

--- As streamBarrier over GPUs: {[device] = {stream, ...}, ...}.
function cutorch.streamBarrierMultiDevice(streams)
   local events = {}
   for d, list in pairs(streams) do
      for _, s in ipairs(list) do events[#events + 1] = mark(d, s) end
   end
   for d, list in pairs(streams) do
      for _, s in ipairs(list) do await(d, s, events) end
   end
end

--- Free and total bytes of a GPU.
function cutorch.getMemoryUsage(device)
   if not device or device == cutorch.getDevice() then return cuda.memory() end
   return cutorch.withDevice(device, cuda.memory)
end

--- {name=, major=, minor=, totalGlobalMem=} of a GPU.
cutorch.getDeviceProperties = cuda.properties

--- Statistics of the caching allocator and of launches: live, peak and cached bytes, allocs, hits, launches, hostOps, early (numbers read during a plan).
cutorch.memoryStats = cuda.stats

--- Lets the peak in memoryStats begin again at what is live.
cutorch.resetPeakMemoryStats = cuda.resetPeak

--- Gives cached memory back to the driver.
cutorch.emptyCache = cuda.releaseCache

--- Seeds the generator: one stream of numbers serves CPU and GPU.
function cutorch.manualSeed(seed) return torch.manualSeed(seed) end
cutorch.manualSeedAll = cutorch.manualSeed
function cutorch.seed() return torch.seed() end
cutorch.seedAll = cutorch.seed
function cutorch.initialSeed() return torch.initialSeed() end
function cutorch.getRNGState() return torch.getRNGState() end
function cutorch.setRNGState(state) return torch.setRNGState(state) end

--- Lets float products round their inputs to TF32 (off at first).
cutorch.setTF32 = cuda.setTF32

--- Same results at every run (off at first): sums at indices are made in order, and the algorithms of products and convolutions are the libraries'
-- guess instead of the fastest of those tried at the first use.
cutorch.setDeterministic = cuda.setDeterministic

--- Lets an op that has no CUDA kernel yet run on the host, by copies (off at first: such an op is an error).
cutorch.setHostOps = cuda.setHostOps

function cutorch.isCachingAllocatorEnabled() return true end
cutorch.hasHalf = true

package.loaded['cutorch'] = cutorch
rawset(_G, 'cutorch', cutorch)
return cutorch
