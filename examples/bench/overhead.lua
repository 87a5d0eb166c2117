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
   for _ = 1, 1500 do -- windows of half a millisecond that take turns: the best ones are quiet
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

-- Closures that leave the compiled code at each call: a call of a C function between tensor ops, elements read into control flow, memory read
-- through FFI, a loop of calls that each act outside, a test of a loss.
local function silent() io.write '' end
local breaking = {
   { 'C calls between ops', 16, function(x) local y = x + 1 io.write '' y:mul(2) io.write '' return y:add(1) end },
   { 'elements in control flow', 16, function(x) local n = 0 for i = 1, 8 do if x[i] > 0 then n = n + 1 end end return n end },
   { 'FFI reads in a loop', 16, function(x) local p, s = torch.data(x), 0 for i = 0, 7 do s = s + p[i] end return x * s end },
   { 'callees that act outside', 16, function(x) for _ = 1, 4 do x = x * 0.5 silent() end return x end },
   { 'a test of a value', 1000, function(x) local y = torch.tanh(x) if y:sum() > 0 then return y * 2 end return y end },
}

-- Per cent by which the compiled form of f is slower than f itself.
local function slower(f, size)
   local c, x, eager, compiled = torch.compile(f), torch.FloatTensor(size):uniform(), math.huge, math.huge
   for _ = 1, 200 do c(x) f(x) end -- the trial of its graphs is over
   for _ = 1, 800 do -- short windows that take turns: the best ones are quiet
      local start = now()
      for _ = 1, 50 do f(x) end
      local middle = now()
      for _ = 1, 50 do c(x) end
      eager, compiled = math.min(eager, middle - start), math.min(compiled, now() - middle)
   end
   return (compiled / eager - 1) * 100, torch.explain(c, x).small and 'runs eagerly' or 'compiled'
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

local checks, call = row(mlp, 150)
local deepChecks, deepCall = row(transformer, 4)
local result = { add_ns = addTime, compiled_mlp_us = checks, compiled_call_us = call, compiled_transformer_us = deepChecks,
   compiled_transformer_call_us = deepCall, require_ms = requireTime * 1e3, library_mb = libraryMB() }
local worst = -100
for _, b in ipairs(breaking) do
   local percent, how = slower(b[3], b[2])
   worst = math.max(worst, percent)
   print(('always breaks: %-25s %+6.1f %% against eager (bar +5), %s'):format(b[1], percent, how))
end
result.breaking_percent = worst
print(('torch.add, one element   %10.0f ns'):format(result.add_ns))
print(('compiled mlp, call       %10.2f us, of which checks %6.2f us (bar 1)'):format(call, checks))
print(('compiled transformer, 12 %10.2f us, of which checks %6.2f us (bar 10)'):format(deepCall, deepChecks))
print(('require torch            %10.1f ms'):format(result.require_ms))
print(('library                  %10.2f MB'):format(result.library_mb))
if opt.json ~= '' then json.save(opt.json, result) end
