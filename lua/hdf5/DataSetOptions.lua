-- DataSetOptions: how a dataset is laid out in the file: in chunks, compressed.
local torch = require 'torch'
local lib = require 'hdf5.lib'
local Options = torch.class('hdf5.DataSetOptions')

function Options:__init() end

--- In chunks of these sizes, one for each dimension; needed to compress and to append.
function Options:setChunked(...)
   self._chunking = {...}
   return self
end

--- Compressed by zlib, level 0 to 9 (6); needs chunks.
function Options:setDeflate(level)
   self._deflate = level or 6
   return self
end

--- Property list for a tensor of these sizes; the caller closes it.
function Options:creationProperties(size)
   local list = lib.check(lib.C.H5Pcreate(lib.C.H5P_CLS_DATASET_CREATE_ID_g), 'no property list')
   local chunk = {}
   for d, n in ipairs(self._chunking or {}) do chunk[d] = math.max(math.min(n, size and size[d] or n), 1) end
   if #chunk > 0 then
      if size and #chunk ~= #size then error(('[hdf5] chunk sizes; got %d, need %d'):format(#chunk, #size), 0) end
      lib.check(lib.C.H5Pset_chunk(list, #chunk, lib.sizes(chunk)), 'chunk sizes; got %s', table.concat(chunk, 'x'))
   end
   if self._deflate then
      if #chunk == 0 then error('[hdf5] compression; got no chunks, need setChunked', 0) end
      lib.check(lib.C.H5Pset_deflate(list, self._deflate), 'compression; got level %s, need 0 to 9 and a library with zlib', tostring(self._deflate))
   end
   return list
end

function Options:close() end

function Options:__tostring__()
   return ('[DataSetOptions: chunking=%s]'):format(self._chunking and table.concat(self._chunking, 'x') or 'none')
end

return Options
