-- serialize: values between Lua states, copied (value <-> CharStorage), on torch's serialization.
--
-- What a .t7 file cannot hold and another state has too goes by name: packages of the library and of Lua, C functions of a loaded package, and
-- compiled functions, which are compiled again where they arrive.
local torch = require 'torch'
local t7 = require 'torch.serialize'
require 'torch.File'

local M = {}

-- Packages ---------------------------------------------------------------------------------------------------------------------

local known = {}
for name in ([[_G string table math io os coroutine debug package bit jit ffi torch nn nngraph optim image paths sys xlua cjson tds threads
   cutorch cunn cudnn graph relume.core]]):gmatch '%S+' do known[name] = true end

local Package = torch.class 'threads.Package'
function Package:write(file) file:writeObject(rawget(self, 'name')) end

--- Becomes a stand-in for the package of that name in this state.
function Package:read(file)
   local package = require(file:readObject())
   setmetatable(self, {__index = package, __newindex = package, __call = function(_, ...) return package(...) end})
end

local function packageName(t)
   for name in pairs(known) do
      if rawequal(package.loaded[name], t) then return name end
   end
end

-- Functions --------------------------------------------------------------------------------------------------------------------

local function isC(f) return debug.getinfo(f, 'S').what ~= 'Lua' and debug.getinfo(f, 'S').what ~= 'main' end

-- A Lua function that calls a package's C function by name; nil when no package has it.
local function byName(f)
   for name, t in pairs(package.loaded) do
      if type(t) == 'table' then
         for key, value in next, t do
            if rawequal(value, f) and type(key) == 'string' then return loadstring(('return require(%q)[%q](...)'):format(name, key)) end
         end
      end
   end
end

local function compiled(f)
   local compile = package.loaded['relume.jit.compile']
   local state = compile and compile.states[f]
   if not state then return end
   local raw, options, again = state.f, state.opts, nil
   return function(...)
      again = again or require('torch').compile(raw, options)
      return again(...)
   end
end

-- What is written in an object's place.
local function hook(object)
   local t = type(object)
   if t == 'table' and not torch.typename(object) then
      local name = packageName(object)
      if name then return torch.setmetatable({name = name}, 'threads.Package') end
   elseif t == 'function' then
      return isC(object) and byName(object) or compiled(object) or object
   end
   return object
end

--- save(value) -> CharStorage.
function M.save(value)
   local file = torch.MemoryFile()
   file:binary()
   local ok, err = pcall(t7.writeObject, file, value, 'job', hook)
   local storage = ok and file:storage()
   file:close()
   if not ok then error(err, 2) end
   return storage
end

--- load(CharStorage) -> value.
function M.load(storage)
   return torch.deserializeFromStorage(storage)
end

return M
