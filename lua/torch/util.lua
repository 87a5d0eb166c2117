-- Utilities of the torch table: tic/toc, environment, include, threads.
local C = require 'relume.core'
local torch = C.torch

local started

--- Seconds since 1970, with a fraction; also starts the clock that torch.toc() reads.
function torch.tic()
   started = C.now()
   return started
end

--- Seconds since the time that torch.tic gave, or since its last call; torch.toc(true) prints them.
function torch.toc(since)
   local s = C.now() - (type(since) == 'number' and since or started or C.now())
   if since == true then print(s) end
   return s
end

--- The environment table of a function.
function torch.getenv(f) return getfenv(f) end
function torch.setenv(f, env) return setfenv(f, env) end

--- Collector pressure from native memory is always on; kept for programs that ask for it.
function torch.setheaptracking(on) torch._heaptracking = on and true or false end
torch._heaptracking = true
function torch.updateerrorhandlers() end
function torch.updatethreadlocals() end

torch.getnumthreads = C.getNumThreads
torch.setnumthreads = C.setNumThreads
torch.getnumcores = C.getNumCores

--- True when the file (default io.stdout) is a terminal.
function torch.isatty(file)
   return C.isatty(file == io.stdin and 0 or file == io.stderr and 2 or 1)
end

--- Directory of the Lua file that calls, and the file's name.
function torch.packageLuaPath(name)
   if not name then
      local src = debug.getinfo(2, 'S').source:gsub('^@', '')
      local dir, file = src:match('^(.*/)([^/]+)$')
      return dir and dir:gsub('/$', '') or '.', file or src
   end
   local path = name:gsub('%.', '/')
   for pattern in package.path:gmatch('[^;]+') do
      local file = pattern:gsub('%?', path)
      local f = io.open(file, 'r')
      if f then
         f:close()
         return (file:gsub('/[^/]*$', ''))
      end
   end
end

--- Runs a Lua file that lies beside the caller's (or in package dir `package`).
function torch.include(package, file)
   local dir
   if file then
      dir = torch.packageLuaPath(package)
   else
      file = package
      local src = debug.getinfo(2, 'S').source:gsub('^@', '')
      dir = src:match('^(.*)/[^/]*$') or '.'
   end
   local f, err = loadfile(dir .. '/' .. file)
   if not f then error('[include] ' .. tostring(err) .. '; got ' .. tostring(file) .. ', need a Lua file', 2) end
   return f()
end

--- Equality of tensors, storages, numbers, strings, booleans and tables of them.
function torch.isequal(a, b)
   if torch.type(a) ~= torch.type(b) then return false end
   if torch.isTensor(a) then return torch.equal(a, b) end
   if torch.isStorage(a) then return torch.isequal(a:totable(), b:totable()) end
   if type(a) ~= 'table' then return a == b end
   for k, v in pairs(a) do if not torch.isequal(v, b[k]) then return false end end
   for k in pairs(b) do if a[k] == nil then return false end end
   return true
end

--- Pushing userdata by pointer is internal to the original; here tensors are shared by their storages.
function torch.pushudata()
   error('[pushudata] raw pointers; got one, need tensors shared through their storages', 2)
end

-- The generator of draws that name none.
torch._gen = C.defaultGenerator()

-- Strings and tables, as Torch7 extends them.
if not rawget(string, 'split') then
   function string.split(s, sep)
      local out = {}
      sep = sep or '%s+'
      local from = 1
      local first, last = s:find(sep, from)
      while first do
         out[#out + 1] = s:sub(from, first - 1)
         from = last + 1
         first, last = s:find(sep, from)
      end
      out[#out + 1] = s:sub(from)
      return out
   end
end
if not rawget(table, 'unpack') then table.unpack = unpack end

return torch
