-- Overheads: what the library adds to a call, to a start and to a disk (nothing -> seven numbers).
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
local C = require 'relume.core'
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

-- Microseconds that a warm call of f(x) takes, and how many of them are not its plan's: guards, loads, argument order, results. The plan's own time is
-- measured by calling it as f does.
local function compiledMicroseconds(f, x, n)
   local best, plan = math.huge, math.huge
   for _ = 1, 300 do f(x) end -- LuaJIT compiles the guards
   for _ = 1, 200 do -- windows of a few milliseconds that take turns: the best ones are quiet
      local start = now()
      for _ = 1, n do f(x) end
      best = math.min(best, (now() - start) / n)
      plan = math.min(plan, torch.compiler.planSeconds(f, n, x))
   end
   return (best - plan) * 1e6, best * 1e6
end

-- Tiny layers, so that the plan does not hide the rest.
local function mlp()
   local net = nn.Sequential():add(nn.Linear(8, 8)):add(nn.ReLU()):add(nn.Linear(8, 8)):add(nn.ReLU()):add(nn.Linear(8, 4)):float()
   return torch.compile(function(x) return net:forward(x) end), torch.FloatTensor(4, 8):uniform()
end

local function transformer()
   local net = nn.Sequential()
   for _ = 1, 12 do net:add(nn.TransformerBlock(8, 2)) end
   net:float()
   return torch.compile(function(x) return net:forward(x) end), torch.FloatTensor(1, 4, 8):uniform()
end

-- Bytes of a file, or of all files of a folder.
local function bytes(path)
   local kind, size = C.stat(path)
   if kind == 'file' then return size end
   if kind ~= 'directory' then return 0 end
   local sum = 0
   for _, name in ipairs(C.readdir(path)) do
      if name ~= '.' and name ~= '..' then sum = sum + bytes(path .. '/' .. name) end
   end
   return sum
end

-- Both libraries, where they were loaded from, and the Lua files.
local function libraryMB()
   local core = assert(package.searchpath('relume.core', package.cpath))
   return (bytes(core) + bytes((core:gsub('relume/core%.so$', 'librelume.so'))) + bytes(root .. 'lua') + bytes(root .. 'jit')) / 1e6
end

local function row(make, n)
   local f, x = make()
   return compiledMicroseconds(f, x, n)
end

local checks, call = row(mlp, 400)
local deepChecks, deepCall = row(transformer, 30)
local result = { add_ns = addTime, compiled_mlp_us = checks, compiled_call_us = call, compiled_transformer_us = deepChecks,
   compiled_transformer_call_us = deepCall, require_ms = requireTime * 1e3, library_mb = libraryMB() }
print(('torch.add, one element   %10.0f ns'):format(result.add_ns))
print(('compiled mlp, call       %10.2f us, of which checks %6.2f us (bar 1)'):format(call, checks))
print(('compiled transformer, 12 %10.2f us, of which checks %6.2f us (bar 10)'):format(deepCall, deepChecks))
print(('require torch            %10.1f ms'):format(result.require_ms))
print(('library                  %10.2f MB'):format(result.library_mb))
if opt.json ~= '' then json.save(opt.json, result) end
