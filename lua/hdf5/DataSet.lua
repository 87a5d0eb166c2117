-- DataSet: one array of a file (dataset <-> tensor), whole or in part.
local torch = require 'torch'
local ffi = require 'ffi'
local lib = require 'hdf5.lib'
local C, check = lib.C, lib.check
local DataSet = torch.class('hdf5.HDF5DataSet')

function DataSet:__init(file, path, id)
   self._file, self._path, self._datasetID = file, path, id
end

function DataSet:__tostring__()
   return ('[HDF5DataSet %s %s]'):format(self._path, table.concat(self:dataspaceSize(), 'x'))
end

-- Calls f(space) with the dataset's dataspace, which is closed whatever happens.
local function withSpace(self, f)
   if not self._file._fileID then error('[hdf5] file is closed; got ' .. self._path .. ' of ' .. self._file._filename, 3) end
   local space = check(C.H5Dget_space(self._datasetID), 'no dataspace; got %s', self._path)
   local ok, result = pcall(f, space)
   C.H5Sclose(space)
   if not ok then error(result, 0) end
   return result
end

--- List of sizes, without reading the data.
function DataSet:dataspaceSize()
   return withSpace(self, function(space)
      local rank = C.H5Sget_simple_extent_ndims(space)
      local size, out = ffi.new('relume_hsize[?]', math.max(rank, 1)), {}
      C.H5Sget_simple_extent_dims(space, size, nil)
      for d = 1, rank do out[d] = tonumber(size[d - 1]) end
      return out
   end)
end

local integers = {[1] = 'Char', [2] = 'Short', [4] = 'Int', [8] = 'Long'}
local unsigned = {[1] = 'Byte', [2] = 'Int', [4] = 'Long', [8] = 'Long'} -- wide enough, where there is one

-- Name of the tensor type for the dataset's elements.
local function kindOf(self)
   local type = check(C.H5Dget_type(self._datasetID), 'no type; got %s', self._path)
   local class, size = C.H5Tget_class(type), tonumber(C.H5Tget_size(type))
   local kind
   if class == lib.FLOAT then kind = size <= 4 and 'Float' or 'Double'
   elseif class == lib.INTEGER then kind = (C.H5Tget_sign(type) == 0 and unsigned or integers)[size] end
   C.H5Tclose(type)
   if not kind then error(('[hdf5] elements of %s; got class %d of HDF5, need integers or floats'):format(self._path, class), 0) end
   return kind
end

--- Constructor of the tensor type that reading gives.
function DataSet:getTensorFactory()
   return torch[kindOf(self) .. 'Tensor']
end

local function newTensor(kind, size)
   if #size == 0 then size = {1} end
   return torch[kind .. 'Tensor']():resize(torch.LongStorage(size)) -- LongTensor(storage) would take it as data
end

--- The whole array.
function DataSet:all()
   local kind = kindOf(self)
   local t = newTensor(kind, self:dataspaceSize())
   if t:nElement() > 0 then check(C.H5Dread(self._datasetID, lib.native[kind], 0, 0, 0, t:data()), 'cannot be read; got %s', self._path) end
   return t
end

-- Moves a block of the file at `start` (from 0) with `count` elements a dimension from or to memory.
local function transfer(self, move, kind, start, count, data)
   withSpace(self, function(space)
      check(C.H5Sselect_hyperslab(space, 0, lib.sizes(start), nil, lib.sizes(count), nil), 'range; got one outside of %s', self._path)
      local memory = check(C.H5Screate_simple(#count, lib.sizes(count), nil), 'no memory for %s', self._path)
      local status = move(self._datasetID, lib.native[kind], memory, space, 0, data)
      C.H5Sclose(memory)
      check(status, 'cannot be moved; got a part of %s', self._path)
   end)
end

--- A part: partial({first, last}, ...), one range (or number) a dimension, from 1.
function DataSet:partial(...)
   local ranges, size, start, count = {...}, self:dataspaceSize(), {}, {}
   if #ranges ~= #size then error(('[hdf5] ranges; got %d, need %d'):format(#ranges, #size), 2) end
   for d, r in ipairs(ranges) do
      local first, last = r, r
      if type(r) == 'table' then first, last = r[1], r[2] end
      if first < 1 or last > size[d] or last < first then
         error(('[hdf5] range %d; got %s to %s, need a part of 1 to %d'):format(d, first, last, size[d]), 2)
      end
      start[d], count[d] = first - 1, last - first + 1
   end
   local kind = kindOf(self)
   local t = newTensor(kind, count)
   transfer(self, C.H5Dread, kind, start, count, t:data())
   return t
end

--- Adds a tensor at the end of the first dimension; the dataset was written in chunks.
function DataSet:_append(tensor, kind)
   local size, count, start = self:dataspaceSize(), tensor:size():totable(), {}
   if #size ~= #count then error(('[hdf5] append; got %d dimensions, need %d'):format(#count, #size), 0) end
   for d = 1, #size do
      if d > 1 and size[d] ~= count[d] then error(('[hdf5] append, dimension %d; got %d, need %d'):format(d, count[d], size[d]), 0) end
      start[d] = d == 1 and size[1] or 0
   end
   size[1] = size[1] + count[1]
   check(C.H5Dset_extent(self._datasetID, lib.sizes(size)), 'append; got %s, need a dataset written in chunks', self._path)
   transfer(self, C.H5Dwrite, kind, start, count, tensor:data())
end

function DataSet:close()
   if self._datasetID then C.H5Oclose(self._datasetID) end
   self._datasetID = nil
end

return DataSet
