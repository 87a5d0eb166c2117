-- Overheads: what the library adds to a call, to a start and to a disk (nothing -> four numbers).
-- luajit examples/bench/overhead.lua --json out.json
local root = dofile((arg[0]:match '^(.*)examples/' or '') .. 'examples/paths.lua')
local ffi = require 'ffi'
ffi.cdef [[
struct relume_timespec { long sec, nsec; };
int clock_gettime(int, struct relume_timespec *);
]]
local stamp = ffi.new 'struct relume_timespec'
local function now()
   ffi.C.clock_gettime(1, stamp)
   return tonumber(stamp.sec) + tonumber(stamp.nsec) * 1e-9
end

-- Seconds that `require 'torch'` takes in a fresh interpreter, best of five.
local child = [[
package.path, package.cpath = %q, %q
local ffi = require 'ffi'
ffi.cdef 'struct T { long s, n; }; int clock_gettime(int, struct T *);'
local t = ffi.new 'struct T'
local function now() ffi.C.clock_gettime(1, t) return tonumber(t.s) + tonumber(t.n) * 1e-9 end
local start = now()
require 'torch'
print(now() - start)
]]
local function requireSeconds()
   local name, best = os.tmpname(), math.huge
   local file = assert(io.open(name, 'w'))
   file:write(child:format(package.path, package.cpath))
   file:close()
   for _ = 1, 5 do
      local pipe = assert(io.popen('luajit ' .. name))
      best = math.min(best, tonumber((pipe:read '*a')) or math.huge)
      pipe:close()
   end
   os.remove(name)
   return best
end

local requireTime = requireSeconds()
require 'torch'
require 'nn'
local json = require 'json'
local opt = require 'options' ('luajit examples/bench/overhead.lua [options]', { { 'json', '', 'write the numbers to this file', 'file' } })

-- Nanoseconds of torch.add of two one-element tensors; the garbage that it makes is collected inside the time.
local function addNanoseconds()
   local a, b, n = torch.FloatTensor(1):fill(1), torch.FloatTensor(1):fill(2), 200000
   local add, best = torch.add, math.huge
   for _ = 1, 30 do -- short windows: the best one is a quiet one
      collectgarbage()
      local start = now()
      for _ = 1, n do add(a, b) end
      collectgarbage()
      best = math.min(best, (now() - start) / n * 1e9)
   end
   return best
end
local addTime = addNanoseconds() -- before anything else fills the heap

-- Microseconds that a warm call of a compiled mlp takes beyond its plan: guards, argument order, result. The mlp is tiny, and the plan's own
-- time, measured by calling it directly, is taken off.
local function compiledMicroseconds()
   local net = nn.Sequential():add(nn.Linear(8, 8)):add(nn.ReLU()):add(nn.Linear(8, 8)):add(nn.ReLU()):add(nn.Linear(8, 4)):float()
   local f = torch.compile(function(x) return net:forward(x) end)
   local x, n, best = torch.FloatTensor(4, 8):uniform(), 100000, math.huge
   for _ = 1, 3 do f(x) end
   for _ = 1, 5 do
      local start = now()
      for _ = 1, n do f(x) end
      best = math.min(best, (now() - start) / n)
   end
   local plan = torch.compiler.planSeconds and torch.compiler.planSeconds(f, n, x) or 0
   return (best - plan) * 1e6, best * 1e6
end

local function libraryMB()
   local pipe = assert(io.popen(("du -cbL '%sbuild/librelume.so' '%sbuild/relume/core.so' '%slua' '%sjit' | tail -1"):format(root, root, root, root)))
   local bytes = tonumber((pipe:read '*a'):match '^%d+')
   pipe:close()
   return bytes / 1e6
end

local checks, call = compiledMicroseconds()
local result = { add_ns = addTime, compiled_mlp_us = checks, compiled_call_us = call,
   require_ms = requireTime * 1e3, library_mb = libraryMB() }
print(('torch.add, one element %10.0f ns'):format(result.add_ns))
print(('compiled mlp, call     %10.2f us, of which checks %.2f us'):format(call, checks))
print(('require torch          %10.1f ms'):format(result.require_ms))
print(('library                %10.2f MB'):format(result.library_mb))
if opt.json ~= '' then json.save(opt.json, result) end
