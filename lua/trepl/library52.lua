-- Library habits of Lua 5.2 that the original's LuaJIT had (stock library -> what programs of the time expect); syntax is lua52's.
local bit = require 'bit'

local function default(library, name, f)
   if rawget(library, name) == nil then rawset(library, name, f) end
end

default(table, 'pack', function(...) return {n = select('#', ...), ...} end)
default(table, 'unpack', unpack)
default(_G, 'rawlen', function(v)
   if type(v) ~= 'table' and type(v) ~= 'string' then error("table or string expected", 2) end
   return #v
end)

-- Where # of this LuaJIT does not ask tables for __len, pairs and ipairs do not ask for __pairs and __ipairs either.
if #setmetatable({}, {__len = function() return 1 end}) == 0 then
   local getmetatable, rawget, next, rawpairs, rawipairs = getmetatable, rawget, next, pairs, ipairs
   local function handler(t, event)
      local mt = getmetatable(t)
      return type(mt) == 'table' and rawget(mt, event) or nil
   end
   rawset(_G, 'pairs', function(t)
      local f = handler(t, '__pairs')
      if f then return f(t) end
      if type(t) == 'table' then return next, t, nil end
      return rawpairs(t)
   end)
   rawset(_G, 'ipairs', function(t)
      local f = handler(t, '__ipairs')
      if f then return f(t) end
      return rawipairs(t)
   end)
end

-- What a command ended with, as 5.2 tells it: true or nil, 'exit' or 'signal', code.
local function ending(code)
   if code >= 128 then return nil, 'signal', code - 128 end
   return code == 0 or nil, 'exit', code
end

--- bit32, the rock that programs of 5.2 require, over LuaJIT's bit: results from 0 to 2^32 - 1.
local function unsigned(f)
   return function(...) return f(...) % 2^32 end
end

local function shift(left, right)
   return function(x, n)
      if n < 0 then left, right, n = right, left, -n end
      return n > 31 and 0 or left(x, n) % 2^32
   end
end

local function bits(x, from, width)
   return bit.rshift(x, from), width == 32 and -1 or bit.lshift(1, width or 1) - 1
end

package.preload['bit32'] = package.preload['bit32'] or function()
   local and_ = unsigned(bit.band)
   return {band = function(...) return and_(-1, ...) end, bor = unsigned(function(...) return bit.bor(0, ...) end),
      bxor = unsigned(function(...) return bit.bxor(0, ...) end), bnot = unsigned(bit.bnot), lrotate = unsigned(bit.rol), rrotate = unsigned(bit.ror),
      arshift = unsigned(function(x, n) return n < 0 and (n < -31 and 0 or bit.lshift(x, -n)) or bit.arshift(x, math.min(n, 31)) end),
      lshift = function(x, n) return shift(bit.lshift, bit.rshift)(x, n) end, rshift = function(x, n) return shift(bit.rshift, bit.lshift)(x, n) end,
      btest = function(...) return and_(-1, ...) ~= 0 end,
      extract = function(x, from, width)
         local value, mask = bits(x, from, width)
         return bit.band(value, mask) % 2^32
      end,
      replace = function(x, v, from, width)
         local _, mask = bits(x, from, width)
         return bit.bor(bit.band(x, bit.bnot(bit.lshift(mask, from))), bit.lshift(bit.band(v, mask), from)) % 2^32
      end}
end

-- close of a pipe tells how the command ended: its shell writes that to a file.
local file_mt = debug.getmetatable(io.stdout)
local rawpopen, rawclose = io.popen, file_mt.__index.close
local statuses = setmetatable({}, {__mode = 'k'})

rawset(io, 'popen', function(command, mode)
   local note = os.tmpname()
   local f, why, code = rawpopen(('(%s\n)\necho $? > %s'):format(command, note), mode)
   if not f then
      os.remove(note)
      return f, why, code
   end
   statuses[f] = note
   return f
end)

local function close(f)
   local note = statuses[f]
   if not note then return rawclose(f) end
   statuses[f] = nil
   local ok, why, code = rawclose(f)
   local file = io.open(note)
   local status = file and file:read '*n'
   if file then file:close() end
   os.remove(note)
   if status then return ending(status) end
   if ok then return nil, 'signal', 0 end -- the shell itself was ended
   return ok, why, code
end

file_mt.__index.close = close
rawset(io, 'close', function(f) return close(f or io.output()) end)

local rawexecute = os.execute
rawset(os, 'execute', function(command)
   local status = rawexecute(command)
   if command == nil then return status ~= 0 end
   if type(status) ~= 'number' then return status end
   if status % 128 ~= 0 then return nil, 'signal', status % 128 end
   return ending(math.floor(status / 256))
end)
