-- Tensor methods that are clearer in Lua than in C: operators, data pointers, small conveniences.
-- Added to every tensor type.
local C = require 'relume.core'
local torch = C.torch
local methods = {}

--- FFI pointer to the first element. The tensor must stay referenced while the pointer is used.
function methods.data(self, as_number)
   local p, ctype = C.data(self)
   if as_number then return tonumber(require('ffi').cast('intptr_t', p)) end
   local ffi = require 'ffi'
   if ctype:find('^rl_') then ctype = 'uint16_t' end
   return ffi.cast(ctype .. '*', p)
end
torch.data = methods.data

--- FFI pointer to the core's object.
function methods.cdata(self)
   return require('ffi').cast('void*', (C.cdata(self)))
end
torch.cdata = methods.cdata

torch.pointer = C.pointer

function methods.isTensor() return true end

--- The default tensor type's version of x.
function methods.real(self)
   return self:type(torch.getdefaulttensortype())
end

--- x:cuda() and friends raise until a device build is there.
function methods.cuda()
   error('[cuda] no CUDA in this build; got a CPU tensor, need the cutorch module', 2)
end

for name in pairs(C.constructors) do
   local mt = torch.getmetatable(name)
   for k, f in pairs(methods) do mt[k] = f end
   mt.torch = torch
   mt.__index__, mt.__newindex__, mt.__len__ = mt.__index, mt.__newindex, mt.__len
end
for name in pairs(C.storages) do
   local mt = torch.getmetatable(name)
   mt.data = methods.data
   mt.cdata = methods.cdata
end

return methods
