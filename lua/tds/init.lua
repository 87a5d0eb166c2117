-- tds: Hash, Vec and AtomicCounter, as the rock `tds` gives them to programs; plain Lua tables behind userdata, so that # works.
-- Values are numbers, strings, booleans, tensors, other torch objects and nested tables (which become Hash or Vec).
local torch = require 'torch'
local C = require 'relume.core'
local tds = {}
package.loaded['tds'] = tds

local getfenv, setfenv = debug.getfenv, debug.setfenv

-- The environment of a userdata holds its data.
local function object(mt, data)
   local u = newproxy()
   setfenv(u, data)
   debug.setmetatable(u, mt) -- its own result differs between Lua versions
   return u
end

local function class(name, methods, construct)
   local mt = torch.newmetatable(name, nil, construct, nil, construct)
   for k, f in pairs(methods) do rawset(mt, k, f) end
   rawset(mt, '__pending', nil)
   return mt
end

local allowed = {number = true, string = true, boolean = true, ['nil'] = true, ['function'] = true}
local function element(v)
   if allowed[type(v)] or torch.typename(v) then return v end
   if type(v) == 'table' then
      if #v > 0 then return tds.Vec(v) end
      return tds.Hash(v)
   end
   error('[tds] value; got ' .. type(v) .. ', need a number, string, boolean, function, table or torch object', 3)
end

-- Hash -------------------------------------------------------------------------------------------------------------------------------

local Hash, hash_mt = {}, nil

--- Hash([table]): a table with a length that counts all of its keys.
function tds.Hash(t)
   local h = object(hash_mt, {n = 0, values = {}})
   for k, v in pairs(t or {}) do h[k] = v end
   return h
end

function Hash.__index(self, k)
   local v = getfenv(self).values[k]
   if v ~= nil then return v end
   return nil
end

function Hash.__newindex(self, k, v)
   local data = getfenv(self)
   if type(k) == 'table' and not torch.typename(k) then error('[tds.Hash] key; got a table, need a number, string, boolean or torch object', 2) end
   local was = data.values[k]
   v = element(v)
   data.values[k] = v
   data.n = data.n + (was == nil and v ~= nil and 1 or was ~= nil and v == nil and -1 or 0)
end

function Hash.__len(self) return getfenv(self).n end
function Hash.__pairs(self) return next, getfenv(self).values, nil end
Hash.pairs = Hash.__pairs

function Hash.write(self, file)
   file:writeLong(#self)
   for k, v in Hash.__pairs(self) do
      file:writeObject(k)
      file:writeObject(v)
   end
end

function Hash.read(self, file)
   for _ = 1, file:readLong() do
      local k = file:readObject()
      self[k] = file:readObject()
   end
   return self
end

local function lines(self, iterate, open)
   local out = {open}
   for k, v in iterate(self) do
      out[#out + 1] = (tostring(k) .. ' : ' .. tostring(v)):gsub('\n', '\n  ')
   end
   return table.concat(out, '\n  ') .. '\n}'
end
function Hash.__tostring(self) return lines(self, Hash.__pairs, ('tds.Hash[%d]{'):format(#self)) end

-- Vec --------------------------------------------------------------------------------------------------------------------------------

local Vec, vec_mt = {}, nil

--- Vec([table or values ...]): an array; positions outside 1 .. #v are refused.
function tds.Vec(...)
   local v = object(vec_mt, {n = 0, values = {}})
   local first = ...
   local from = select('#', ...) == 1 and type(first) == 'table' and not torch.typename(first) and first or {...}
   for i = 1, #from do Vec.insert(v, from[i]) end
   return v
end

local function position(data, k, most, name)
   if type(k) ~= 'number' or k < 1 or k > most or k ~= math.floor(k) then
      error(('[tds.Vec] %s; got %s, need 1 to %d'):format(name, tostring(k), most), 3)
   end
   return k
end

--- Appends a value, or inserts it at a position.
function Vec.insert(self, at, ...)
   local data, v = getfenv(self), at
   if select('#', ...) > 0 then
      v = ...
      position(data, at, data.n + 1, 'position')
      for i = data.n, at, -1 do data.values[i + 1] = data.values[i] end
   else
      at = data.n + 1
   end
   data.values[at] = element(v)
   data.n = data.n + 1
end

--- Removes the last value, or that at a position, and returns it.
function Vec.remove(self, at)
   local data = getfenv(self)
   if data.n == 0 then return nil end
   at = position(data, at or data.n, data.n, 'position')
   local v = data.values[at]
   for i = at, data.n do data.values[i] = data.values[i + 1] end
   data.n = data.n - 1
   return v
end

function Vec.resize(self, n)
   local data = getfenv(self)
   for i = n + 1, data.n do data.values[i] = nil end
   data.n = n
end

function Vec.sort(self, compare)
   local data = getfenv(self)
   table.sort(data.values, compare)
end

function Vec.concat(self, sep, i, j)
   return table.concat(getfenv(self).values, sep, i or 1, j or #self)
end

function Vec.unpack(self) return unpack(getfenv(self).values, 1, #self) end

--- A plain Lua table with the same values.
function Vec.totable(self) return {Vec.unpack(self)} end

function Vec.__index(self, k)
   if type(k) == 'number' then return getfenv(self).values[k] end
   return Vec[k]
end

function Vec.__newindex(self, k, v)
   local data = getfenv(self)
   position(data, k, data.n + 1, 'index')
   if k == data.n + 1 then return Vec.insert(self, v) end
   data.values[k] = element(v)
end

function Vec.__len(self) return getfenv(self).n end
function Vec.__pairs(self)
   local data = getfenv(self)
   return function(_, i)
      i = i + 1
      if i <= data.n then return i, data.values[i] end
   end, self, 0
end
Vec.__ipairs, Vec.pairs = Vec.__pairs, Vec.__pairs
function Vec.__tostring(self) return lines(self, Vec.__pairs, ('tds.Vec[%d]{'):format(#self)) end

function Vec.write(self, file)
   file:writeLong(#self)
   for i = 1, #self do file:writeObject(self[i]) end
end

function Vec.read(self, file)
   local n = file:readLong()
   for i = 1, n do getfenv(self).values[i] = file:readObject() end
   getfenv(self).n = n
   return self
end

hash_mt = class('tds.Hash', Hash, tds.Hash)
vec_mt = class('tds.Vec', Vec, tds.Vec)

-- Counter ----------------------------------------------------------------------------------------------------------------------------

local Counter = torch.class('tds.AtomicCounter', tds)

--- A counter that starts at 0.
-- One for all threads that share its storage (threads.sharedserialize).
function Counter:__init(value)
   self.count = torch.LongStorage {value or 0}
end
function Counter:inc() return C.atomicAdd(self.count, 1, 1) end
function Counter:get() return C.atomicAdd(self.count, 1, 0) end
function Counter:set(value) self.count[1] = value end

tds.hash, tds.vec, tds.atomic_counter = tds.Hash, tds.Vec, tds.AtomicCounter
tds.C = C

-- A stock LuaJIT does not ask __pairs and __ipairs: the globals do once this module is loaded.
local rawpairs, rawipairs = pairs, ipairs
function _G.pairs(t) -- luacheck: ignore 122
   if type(t) == 'userdata' then
      local mt = debug.getmetatable(t)
      local f = mt and mt.__pairs
      if f then return f(t) end
   end
   return rawpairs(t)
end
function _G.ipairs(t) -- luacheck: ignore 122
   if type(t) == 'userdata' and debug.getmetatable(t) == vec_mt then return Vec.__ipairs(t) end
   return rawipairs(t)
end

return tds
