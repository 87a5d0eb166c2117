-- File: torch.DiskFile, MemoryFile and PipeFile as classes; typed I/O is the core's, objects are torch.serialize's.
local C = require 'relume.core'
local torch = C.torch

local openers = {DiskFile = C.openDisk, MemoryFile = C.openMemory, PipeFile = C.openPipe}
local File = torch.newmetatable('torch.File')
rawset(torch, 'File', setmetatable({}, {__index = File, __newindex = File, __metatable = File}))

for name, open in pairs(openers) do
   local full = 'torch.' .. name
   local mt = torch.getmetatable(full)
   setmetatable(mt, File)
   torch._core_type(full, open)
   mt.new = open
end

local serialize = require 'torch.serialize'

--- Writes any Lua value, sharing kept: numbers, strings, booleans, nil, tables, tensors, storages, class objects, functions.
-- `name` stands for the object in error messages; hook(object) gives what is written in an object's place.
function File:writeObject(object, name, hook)
   return serialize.writeObject(self, object, name, hook)
end

--- Reads what writeObject wrote.
function File:readObject()
   return serialize.readObject(self)
end

--- True when writeObject knows the value's type.
function File:isWritableObject(object)
   return serialize.writable(object)
end

return File
