-- File and Group: paths of a file (path <-> groups and datasets). A group holds its path only; datasets stay open until the file is closed.
local torch = require 'torch'
local ffi = require 'ffi'
local lib = require 'hdf5.lib'
local C, check = lib.C, lib.check
require 'hdf5.DataSet'
require 'hdf5.DataSetOptions'

local Group = torch.class('hdf5.HDF5Group')
local File = torch.class('hdf5.HDF5File')

function Group:__init(file, path)
   self._file, self._path = file, path
end

function Group:__tostring__() return ('[HDF5Group %s]'):format(self._path) end

-- '/a/b' from a group's path and a path inside it, or a list of names.
local function join(path, name)
   if type(name) == 'table' then name = table.concat(name, '/') end
   local full = (path .. '/' .. (name or '')):gsub('/+', '/')
   return #full > 1 and full:gsub('/$', '') or full
end

-- The group or dataset at a path.
local function object(file, path)
   if file._objects[path] then return file._objects[path] end
   local id = C.H5Oopen(file._fileID, path, 0)
   if id < 0 then error(('[hdf5] no such path; got %s in %s'):format(path, file._filename), 3) end
   local kind = C.H5Iget_type(id)
   if kind == lib.DATASET then
      file._objects[path] = hdf5.HDF5DataSet(file, path, id)
      return file._objects[path]
   end
   C.H5Oclose(id)
   if kind ~= lib.GROUP then error(('[hdf5] object; got a type at %s, need a group or a dataset'):format(path), 3) end
   return hdf5.HDF5Group(file, path)
end

--- Group or dataset at a path inside this group.
function Group:read(path) return object(self._file, join(self._path, path)) end

-- Names of what a group holds.
local function children(self)
   local id = check(C.H5Oopen(self._file._fileID, self._path, 0), 'no such path; got %s', self._path)
   local info, list = ffi.new 'relume_h5group', {}
   C.H5Gget_info(id, info)
   for i = 0, tonumber(info.links) - 1 do
      local size = tonumber(C.H5Lget_name_by_idx(id, '.', 0, 0, i, nil, 0, 0))
      local name = ffi.new('char[?]', size + 1)
      C.H5Lget_name_by_idx(id, '.', 0, 0, i, name, size + 1, 0)
      list[i + 1] = ffi.string(name)
   end
   C.H5Oclose(id)
   return list
end

--- Everything in the group, as nested tables of tensors.
function Group:all()
   local out = {}
   for _, name in ipairs(children(self)) do out[name] = self:read(name):all() end
   return out
end

local function exists(file, path)
   local at = ''
   for name in path:gmatch '[^/]+' do
      at = at .. '/' .. name
      if C.H5Lexists(file._fileID, at, 0) <= 0 then return false end
   end
   return true
end

-- Calls f(list) with link properties that make the groups on the way.
local function withLinks(f)
   local list = check(C.H5Pcreate(C.H5P_CLS_LINK_CREATE_ID_g), 'no property list')
   C.H5Pset_create_intermediate_group(list, 1)
   local result = f(list)
   C.H5Pclose(list)
   return result
end

local halves = {Half = true, BFloat16 = true}

-- Contiguous tensor in an element type that the file can hold, and the type's name.
local function writable(data, path)
   local kind = torch.isTensor(data) and data:type():match '^torch%.(%w+)Tensor$'
   if halves[kind] then data, kind = data:float(), 'Float' end
   if not lib.native[kind] then error(('[hdf5] data for %s; got %s, need a tensor or a table of tensors'):format(path, torch.type(data)), 4) end
   return data:contiguous(), kind
end

local function create(file, path, data, options)
   local t, kind = writable(data, path)
   if exists(file, path) then error(('[hdf5] write; got %s, which is there already'):format(path), 4) end
   local size, most = t:size():totable(), t:size():totable()
   options = options or hdf5.DataSetOptions()
   if options._chunking then most[1] = -1 end -- may grow
   local list = options:creationProperties(size)
   local space = check(C.H5Screate_simple(#size, lib.sizes(size), lib.sizes(most)), 'sizes; got %s', table.concat(size, 'x'))
   local id = withLinks(function(links) return C.H5Dcreate2(file._fileID, path, lib.native[kind], space, links, list, 0) end)
   C.H5Sclose(space)
   C.H5Pclose(list)
   check(id, 'write; got %s, need a file open for writing', path)
   file._objects[path] = hdf5.HDF5DataSet(file, path, id)
   if t:nElement() > 0 then check(C.H5Dwrite(id, lib.native[kind], 0, 0, 0, t:data()), 'cannot be written; got %s', path) end
end

local function append(file, path, data, options)
   if not exists(file, path) then
      options = options or hdf5.DataSetOptions()
      if not options._chunking then options = hdf5.DataSetOptions():setChunked(unpack(data:size():totable())) end
      return create(file, path, data, options)
   end
   object(file, path):_append(writable(data, path))
end

-- Applies put to each tensor of a table, groups made also for empty tables.
local function each(file, path, data, options, put)
   if type(data) ~= 'table' then return put(file, path, data, options) end
   if path ~= '/' and not exists(file, path) then
      C.H5Oclose(check(withLinks(function(links) return C.H5Gcreate2(file._fileID, path, links, 0, 0) end), 'group; got %s', path))
   end
   for name, value in pairs(data) do each(file, join(path, tostring(name)), value, options, put) end
end

--- Writes a tensor, or a table of tensors and tables as groups, at a path inside this group.
function Group:write(path, data, options) each(self._file, join(self._path, path), data, options, create) end

--- Adds to datasets that were written in chunks, along the first dimension; makes what is not there.
function Group:append(path, data, options) each(self._file, join(self._path, path), data, options, append) end

--- The group at a name inside this one, made when it is not there.
function Group:getOrCreateChild(name)
   each(self._file, join(self._path, name), {}, nil, create)
   return self:read(name)
end
Group.createChild = Group.getOrCreateChild

function Group:close() end

function File:__init(filename, id)
   self._filename, self._fileID, self._objects = filename, id, {}
end

function File:filename() return self._filename end
function File:__tostring__() return ('[HDF5File: %s]'):format(self._filename) end

local function root(self)
   if not self._fileID then error('[hdf5] file is closed; got ' .. self._filename, 3) end
   return hdf5.HDF5Group(self, '/')
end

--- Group or dataset at a path (the root); dataset:all() is its tensor.
function File:read(path) return root(self):read(path) end
function File:all() return root(self):all() end

function File:write(path, data, options)
   if type(path) ~= 'string' then error('[hdf5] path; got ' .. type(path) .. ', need string', 2) end
   if join('/', path) == '/' and type(data) ~= 'table' then error('[hdf5] data for /; got ' .. torch.type(data) .. ', need a table', 2) end
   return root(self):write(path, data, options)
end

function File:append(path, data, options) return root(self):append(path, data, options) end

--- Writes what is not on disk yet.
function File:flush() C.H5Fflush(self._fileID, 1) end

function File:close()
   if not self._fileID then return end
   for _, set in pairs(self._objects) do set:close() end
   C.H5Fclose(self._fileID)
   self._fileID, self._objects = nil, {}
end

--- In a .t7 file: its name. Loading opens it again, for reading where nobody has it open for writing.
function File:__write(file)
   if self._fileID then self:flush() end
   file:writeObject(self._filename)
end

function File:__read(file)
   local name = file:readObject()
   local ok, again = pcall(hdf5.open, name, 'r')
   if not ok then again = hdf5.open(name, 'r+') end
   self._filename, self._fileID, self._objects = again._filename, again._fileID, {}
end

local modes = {r = {'H5Fopen', 0}, ['r+'] = {'H5Fopen', 1}, w = {'H5Fcreate', 2}, ['w-'] = {'H5Fcreate', 4}}

--- Opens a file: 'r' reads; 'r+' changes; 'w' makes anew; 'w-' makes, fails if it is there; 'a' (default) changes or makes.
function hdf5.open(name, mode)
   if type(name) ~= 'string' then error('[hdf5] file name; got ' .. type(name) .. ', need string', 2) end
   name = name:gsub('^~/', (os.getenv 'HOME' or '~') .. '/')
   mode = mode or 'a'
   if mode == 'a' then
      local file = io.open(name, 'rb')
      mode = file and 'r+' or 'w'
      if file then file:close() end
   end
   local how = modes[mode]
   if not how then error('[hdf5] mode; got ' .. tostring(mode) .. ', need r, r+, w, w- or a', 2) end
   local id = how[1] == 'H5Fopen' and C.H5Fopen(name, how[2], 0) or how[1] == 'H5Fcreate' and C.H5Fcreate(name, how[2], 0, 0)
   if id < 0 then error(('[hdf5] file cannot be opened; got %s with mode %s'):format(name, mode), 2) end
   return hdf5.HDF5File(name, id)
end
hdf5.HDF5File.open = hdf5.open

return File
