-- hdf5: HDF5 files as the rock torch-hdf5 gives them to programs, over libhdf5 (file <-> tensors).
require 'torch'
local lib = require 'hdf5.lib'

local hdf5 = {version = lib.version}
package.loaded['hdf5'] = hdf5
rawset(_G, 'hdf5', hdf5)
require 'hdf5.File'

return hdf5
