-- Lib: libhdf5 through LuaJIT's FFI, opened when the package is first required (library -> functions that raise errors).
local ffi = require 'ffi'

local names = {'libhdf5_serial.so.103', 'libhdf5_serial.so.310', 'libhdf5_serial.so', 'libhdf5.so.103', 'libhdf5.so.200', 'libhdf5.so.310', 'hdf5',
   'hdf5_serial'}
local clib
for _, name in ipairs(names) do
   local ok, found = pcall(ffi.load, name)
   if ok then
      clib = found
      break
   end
end
if not clib then error('[hdf5] got no library libhdf5, need HDF5 1.8.14 or later. On Debian and Ubuntu: apt-get install libhdf5-103-1', 0) end

ffi.cdef 'int H5open(void); int H5get_libversion(unsigned *major, unsigned *minor, unsigned *release);'
clib.H5open()
local v = ffi.new 'unsigned[3]'
clib.H5get_libversion(v, v + 1, v + 2)
local version = {v[0], v[1], v[2]}
if version[1] == 1 and (version[2] < 8 or version[2] == 8 and version[3] < 14) then
   error(('[hdf5] library; got %d.%d.%d, need 1.8.14 or later'):format(v[0], v[1], v[2]), 0)
end

-- Identifiers became 64 bits wide in 1.10.
ffi.cdef(('typedef %s relume_hid;'):format((version[1] > 1 or version[2] >= 10) and 'int64_t' or 'int'))
ffi.cdef [[
typedef unsigned long long relume_hsize;
typedef struct { int storage; relume_hsize links; int64_t order; int mounted; char more[64]; } relume_h5group;
relume_hid H5Fcreate(const char *name, unsigned flags, relume_hid create, relume_hid access);
relume_hid H5Fopen(const char *name, unsigned flags, relume_hid access);
int H5Fclose(relume_hid file);
int H5Fflush(relume_hid object, int scope);
relume_hid H5Oopen(relume_hid at, const char *name, relume_hid access);
int H5Oclose(relume_hid object);
int H5Iget_type(relume_hid id);
int H5Lexists(relume_hid at, const char *name, relume_hid access);
ssize_t H5Lget_name_by_idx(relume_hid at, const char *group, int index, int order, relume_hsize n, char *name, size_t size, relume_hid access);
int H5Gget_info(relume_hid group, relume_h5group *info);
relume_hid H5Gcreate2(relume_hid at, const char *name, relume_hid link, relume_hid create, relume_hid access);
relume_hid H5Dcreate2(relume_hid at, const char *name, relume_hid type, relume_hid space, relume_hid link, relume_hid create, relume_hid access);
relume_hid H5Dget_space(relume_hid set);
relume_hid H5Dget_type(relume_hid set);
int H5Dread(relume_hid set, relume_hid type, relume_hid memory, relume_hid file, relume_hid transfer, void *data);
int H5Dwrite(relume_hid set, relume_hid type, relume_hid memory, relume_hid file, relume_hid transfer, const void *data);
int H5Dset_extent(relume_hid set, const relume_hsize *size);
relume_hid H5Screate_simple(int rank, const relume_hsize *size, const relume_hsize *most);
int H5Sget_simple_extent_ndims(relume_hid space);
int H5Sget_simple_extent_dims(relume_hid space, relume_hsize *size, relume_hsize *most);
int H5Sselect_hyperslab(relume_hid space, int op, const relume_hsize *start, const relume_hsize *stride, const relume_hsize *count,
   const relume_hsize *block);
int H5Sclose(relume_hid space);
int H5Tget_class(relume_hid type);
size_t H5Tget_size(relume_hid type);
int H5Tget_sign(relume_hid type);
int H5Tclose(relume_hid type);
relume_hid H5Pcreate(relume_hid class);
int H5Pclose(relume_hid list);
int H5Pset_chunk(relume_hid list, int rank, const relume_hsize *size);
int H5Pset_deflate(relume_hid list, unsigned level);
int H5Pset_create_intermediate_group(relume_hid list, unsigned on);
int H5Eset_auto2(relume_hid stack, void *f, void *data);
extern relume_hid H5P_CLS_DATASET_CREATE_ID_g, H5P_CLS_LINK_CREATE_ID_g;
extern relume_hid H5T_NATIVE_UCHAR_g, H5T_NATIVE_SCHAR_g, H5T_NATIVE_SHORT_g, H5T_NATIVE_INT_g, H5T_NATIVE_LLONG_g, H5T_NATIVE_FLOAT_g, H5T_NATIVE_DOUBLE_g;
]]
clib.H5Eset_auto2(0, nil, nil) -- errors are raised, not printed

local lib = {C = clib, version = version, GROUP = 2, DATASET = 5, INTEGER = 0, FLOAT = 1}

--- Raises `what` when a result of the library says that it failed; gives the result back.
function lib.check(result, what, ...)
   if result < 0 then error('[hdf5] ' .. what:format(...), 0) end
   return result
end

--- A C array of sizes from a list of numbers.
function lib.sizes(list)
   return ffi.new('relume_hsize[?]', math.max(#list, 1), list)
end

--- Memory type of a tensor type's elements.
lib.native = {Byte = clib.H5T_NATIVE_UCHAR_g, Char = clib.H5T_NATIVE_SCHAR_g, Short = clib.H5T_NATIVE_SHORT_g, Int = clib.H5T_NATIVE_INT_g,
   Long = clib.H5T_NATIVE_LLONG_g, Float = clib.H5T_NATIVE_FLOAT_g, Double = clib.H5T_NATIVE_DOUBLE_g}

return lib
