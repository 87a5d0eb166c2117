-- sharedserialize: values between Lua states, of which storages, and with them tensors, are shared instead of copied (value <-> CharStorage).
-- What save gives must be loaded once: it carries a reference to each storage.
local C = require 'relume.core'
local torch = require 'torch'
local serialize = require 'threads.serialize'

local M = {}

local function write(self, file)
   file:writeLong(C.storageSend(self))
end

local function read(self, file)
   C.storageReceive(self, file:readLong())
end

-- Runs f with storages written and read as addresses.
local function sharing(f, ...)
   local was = {}
   for name in pairs(C.storages) do
      local mt = torch.getmetatable(name)
      was[mt] = {mt.write, mt.read}
      mt.write, mt.read = write, read
   end
   local ok, result = pcall(f, ...)
   for mt, methods in pairs(was) do mt.write, mt.read = methods[1], methods[2] end
   if not ok then error(result, 0) end
   return result
end

--- save(value) -> CharStorage.
function M.save(value) return sharing(serialize.save, value) end

--- load(CharStorage) -> value.
function M.load(storage) return sharing(serialize.load, storage) end

return M
