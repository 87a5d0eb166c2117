-- Prints the C that a small closure becomes: seven elementwise ops and a reduction, one loop.
-- luajit examples/fuse.lua
local ffi = require 'ffi'
ffi.cdef 'int setenv(const char *, const char *, int);'
ffi.C.setenv('RELUME_DEBUG', '4', 0) -- read once, when the library loads
dofile((arg[0]:match '^(.*)examples/' or '') .. 'examples/paths.lua')
require 'torch'

local f = torch.compile(function(x, y)
   local z = torch.cmul(torch.exp(-(x - y):pow(2)), torch.tanh(x)) + 1
   return z:sum(2)
end)

torch.manualSeed(1)
local x, y = torch.FloatTensor(1000, 1000):uniform(), torch.FloatTensor(1000, 1000):uniform()
print(f(x, y):narrow(1, 1, 3))
