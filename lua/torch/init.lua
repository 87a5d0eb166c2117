-- torch: the package a program requires; fills the core's function table with what is written in Lua.
-- relume.core (C) + torch.* modules -> global `torch`. Rarely used parts load at first use.
-- Threads that wait give the processor back soon: spinning against another busy process made matrix products ten times slower.
-- OpenMP reads this when the core loads it.
if not os.getenv 'GOMP_SPINCOUNT' and not os.getenv 'OMP_WAIT_POLICY' then
   local ffi = require 'ffi'
   pcall(ffi.cdef, 'int setenv(const char *name, const char *value, int replace);')
   pcall(function() ffi.C.setenv('GOMP_SPINCOUNT', '2000', 0) end)
end
local C = require 'relume.core'
local torch = C.torch
rawset(_G, 'torch', torch)
package.loaded['torch'] = torch

require 'torch.class'

torch.version = '7.relume'
for name, constructor in pairs(C.constructors) do torch._core_type(name, constructor) end
for name, constructor in pairs(C.storages) do torch._core_type(name, constructor) end
torch._core_type('torch.Generator', C.newGenerator)

--- Type of tensors that torch.Tensor() and torch.zeros() make.
function torch.getdefaulttensortype()
   return C.getDefaultDtype()
end

--- Sets it: torch.setdefaulttensortype('torch.FloatTensor').
function torch.setdefaulttensortype(name)
   local ctor = type(name) == 'string' and torch.getconstructortable(name)
   if not ctor or not name:find('Tensor$') then
      error('[setdefaulttensortype] type; got ' .. tostring(name) .. ", need the name of a tensor type such as 'torch.FloatTensor'", 2)
   end
   C.setDefaultDtype(name)
   torch.Tensor = ctor
   torch.Storage = torch.getconstructortable((name:gsub('Tensor$', 'Storage')))
end
torch.setdefaulttensortype(C.getDefaultDtype())

--- Kind of the generator that draws come from: 'philox', or 'mt19937', which repeats the original Torch7's streams for a seed.
-- RELUME_GENERATOR sets it from outside.
function torch.getdefaultgenerator() return C.getDefaultGenerator() end

--- Sets it: torch.setdefaultgenerator('mt19937'). The new stream starts at the current seed.
function torch.setdefaultgenerator(kind)
   if kind ~= 'philox' and kind ~= 'mt19937' then
      error('[setdefaultgenerator] kind; got ' .. tostring(kind) .. ", need 'philox' or 'mt19937'", 2)
   end
   C.setDefaultGenerator(kind)
end

-- name -> module that defines it.
local lazy = {
   CmdLine = 'CmdLine', Timer = 'Timer', Tester = 'Tester', TestSuite = 'TestSuite',
   save = 'serialize', load = 'serialize', saveobj = 'serialize', loadobj = 'serialize', serialize = 'serialize', deserialize = 'serialize',
   serializeToStorage = 'serialize', deserializeFromStorage = 'serialize',
   File = 'File', DiskFile = 'File', MemoryFile = 'File', PipeFile = 'File',
   autocast = 'autocast', GradScaler = 'autocast',
   autograd = 'autograd', grad = 'autograd', compile = 'compile', explain = 'compile', markDynamic = 'compile', compiler = 'compile',
   multinomialAlias = 'random', multinomialAliasSetup = 'random',
   cross = 'math', renorm = 'math', histc = 'math', bhistc = 'math',
   where = 'math', flip = 'math', roll = 'math', einsum = 'math',
   conv2 = 'conv', xcorr2 = 'conv', conv3 = 'conv', xcorr3 = 'conv', match = 'math', test = 'test', attention = 'attention',
   multinomialAlias_ = 'random', multinomialAliasSetup_ = 'random', Allocator = 'random',
}
local linalg = {'gesv', 'gels', 'trtrs', 'symeig', 'eig', 'svd', 'qr', 'geqrf', 'orgqr', 'ormqr', 'inverse', 'potrf', 'potri', 'potrs', 'pstrf'}
for _, name in ipairs(linalg) do lazy[name] = 'linalg' end
setmetatable(torch, {__index = function(t, key)
   local module = lazy[key]
   if not module then return nil end
   require('torch.' .. module)
   return rawget(t, key)
end})

-- Printing loads at the first tostring.
local function lazy_tostring(kind)
   return function(x)
      return require('torch.print')[kind](x)
   end
end
local function lazy_method(module, key)
   return function(...)
      return require('torch.' .. module)[key](...)
   end
end
for name in pairs(C.constructors) do
   local mt = torch.getmetatable(name)
   for _, key in ipairs {'cross', 'histc', 'bhistc', 'match', 'flip', 'roll'} do mt[key] = lazy_method('math', key) end
   for _, key in ipairs {'conv2', 'xcorr2', 'conv3', 'xcorr3'} do mt[key] = lazy_method('conv', key) end
   for _, key in ipairs(linalg) do mt[key] = lazy_method('linalg', key) end
   mt.renorm = function(self, ...)
      require('torch.math')
      return self:renorm(...)
   end
   mt.__tostring = lazy_tostring('tensor')
   mt.__tostring__ = mt.__tostring
   mt.read = function(...) return require('torch.serialize').readTensor(...) end
   mt.write = function(...) return require('torch.serialize').writeTensor(...) end
end
for _, name in ipairs {'torch.FloatTensor', 'torch.DoubleTensor'} do
   for _, key in ipairs {'multinomialAlias_', 'multinomialAliasSetup_'} do torch.getmetatable(name)[key] = lazy_method('random', key) end
end
torch.getmetatable('torch.Generator').write = lazy_method('random', 'writeGenerator')
torch.getmetatable('torch.Generator').read = lazy_method('random', 'readGenerator')
for name in pairs(C.storages) do
   local mt = torch.getmetatable(name)
   mt.__tostring = lazy_tostring('storage')
   mt.__tostring__ = mt.__tostring
   mt.read = function(...) return require('torch.serialize').readStorage(...) end
   mt.write = function(...) return require('torch.serialize').writeStorage(...) end
end

require 'torch.tensor'
require 'torch.util'

-- Programs require cjson; the rock lua-cjson goes first where it is installed.
package.loaders[#package.loaders + 1] = function(name)
   if name == 'cjson' then return function() return require 'torch.json' end end
end

rawset(_G, 'include', torch.include)
if not rawget(_G, 'paths') then rawset(_G, 'paths', require 'paths') end
return torch
