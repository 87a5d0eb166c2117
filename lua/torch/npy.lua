-- NumPy's .npy (one array) and .npz (a zip archive of arrays) (file <-> tensors).
-- Format: numpy.lib.format, versions 1 to 3.
local zip = require 'torch.zip'

local M = {}
local MAGIC = '\147NUMPY'

local function bad(fmt, ...) error('[load] ' .. fmt:format(...), 0) end

-- NumPy's kind and bytes -> how elements are read, and the tensor's type when it is another one.
local types = {
   f2 = {'Half'}, f4 = {'Float'}, f8 = {'Double'}, i1 = {'Char'}, i2 = {'Short'}, i4 = {'Int'}, i8 = {'Long'}, u1 = {'Byte'}, b1 = {'Byte'},
   u2 = {'Short', 'Int', 2^16}, u4 = {'Int', 'Long', 2^32}, u8 = {'Long'},
}
local names = {Half = '<f2', Float = '<f4', Double = '<f8', Char = '|i1', Short = '<i2', Int = '<i4', Long = '<i8', Byte = '|u1'}
local sizes = {Half = 2, Float = 4, Double = 8, Char = 1, Short = 2, Int = 4, Long = 8, Byte = 1}
M.bytes = sizes

-- descr, fortran_order and shape of the header's Python dictionary.
local function parse(text)
   local order, kind = text:match("['\"]descr['\"]%s*:%s*['\"]([<>|=]?)([%a]%d+)['\"]")
   if not kind then bad('type of the array; got %s, need a plain number type', text:match("['\"]descr['\"]%s*:%s*(.-),%s*['\"]") or 'none') end
   if not types[kind] then bad('type of the array; got %s, need one of b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8', kind) end
   local fortran = text:match("['\"]fortran_order['\"]%s*:%s*(%a+)")
   local shape = text:match("['\"]shape['\"]%s*:%s*%(([%d%s,L]*)%)")
   if not shape or (fortran ~= 'True' and fortran ~= 'False') then bad('header of the array; got %s, need descr, fortran_order and shape', text:sub(1, 80)) end
   local size = {}
   for n in shape:gmatch('%d+') do size[#size + 1] = tonumber(n) end
   return kind, order, fortran == 'True', size
end

--- Reads one array at file's position; left: bytes up to its end. Unsigned types widen: u2 to Int, u4 to Long; a shape of () gives one element.
function M.read(file, left)
   if left < 10 then bad('array; got %.0f bytes, need a header', left) end
   local s = file:readBytes(8)
   if s:sub(1, 6) ~= MAGIC then bad('array; got %q, need NumPy\'s magic', s:sub(1, 6)) end
   local major = s:byte(7)
   if major < 1 or major > 3 then bad('version of the array\'s format; got %d, need 1 to 3', major) end
   local width = major == 1 and 2 or 4
   local b, n = file:readBytes(width), 0
   for i = width, 1, -1 do n = n * 256 + b:byte(i) end
   left = left - 8 - width - n
   if left < 0 then bad('header of the array; got %d bytes, need fewer than the file has', n) end
   local kind, order, fortran, size = parse(file:readBytes(n))
   local t = types[kind]
   local count = 1
   for _, v in ipairs(size) do count = count * v end
   if count * sizes[t[1]] > left then bad('array of %.0f elements; got %.0f bytes, need %.0f', count, left, count * sizes[t[1]]) end
   file[order == '>' and 'bigEndianEncoding' or 'littleEndianEncoding'](file)
   local storage = torch[t[1] .. 'Storage'](count)
   if count > 0 then file['read' .. t[1]](file, storage) end
   file:nativeEndianEncoding()
   if #size == 0 then size = {1} end
   local back = {}
   for i = 1, #size do back[i] = size[fortran and #size + 1 - i or i] end
   local x = torch[t[1] .. 'Tensor'](storage, 1, torch.LongStorage(back))
   if t[2] then
      x = x:type('torch.' .. t[2] .. 'Tensor')
      x:add(x:lt(0):typeAs(x):mul(t[3]))
   elseif kind == 'u8' and count > 0 and x:min() < 0 then
      bad('array of u8; got a value of 2^63 or more, need values that Long holds')
   end
   if fortran and #size > 1 then
      for i = 1, #size do back[i] = #size + 1 - i end
      x = x:permute(unpack(back))
   end
   return x
end

-- The header of a tensor, padded so that elements begin at a multiple of 64 bytes.
local function header(x)
   local kind = names[x:type():match('^torch%.(%w+)Tensor$') or '']
   if not kind then error(('[save] npy; got %s, need a CPU tensor of a type that NumPy has'):format(x:type()), 0) end
   local size = {}
   for d = 1, x:dim() do size[d] = ('%d'):format(x:size(d)) .. (x:dim() == 1 and ',' or '') end
   if x:dim() == 0 then size[1] = x:nElement() == 0 and '0,' or nil end
   local text = ("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }"):format(kind, table.concat(size, ', '))
   local pad = -(#MAGIC + 4 + #text + 1) % 64
   text = text .. (' '):rep(pad) .. '\n'
   return MAGIC .. '\1\0' .. string.char(#text % 256, math.floor(#text / 256)) .. text
end

--- Elements of x in row-major order, as a storage of exactly those.
function M.elements(x)
   if x:nElement() == 0 then return nil end
   if not x:isContiguous() or x:storage():size() ~= x:nElement() then x = x:clone() end
   return x:storage()
end

local function isTensor(x) return torch.typename(x) ~= nil and torch.isTensor(x) end

--- Writes one tensor.
function M.write(file, x)
   if not isTensor(x) then error(('[save] npy; got a %s, need a tensor'):format(torch.type(x)), 0) end
   file:writeBytes(header(x))
   local s = M.elements(x)
   if s then file['write' .. x:type():match('%.(%w+)Tensor')](file, s) end
end

--- Reads an archive: a table of tensors by name.
function M.readArchive(file, size)
   local out = {}
   for _, e in ipairs(zip.entries(file, size)) do
      local f, n = zip.open(file, size, e)
      out[(e.name:gsub('%.npy$', ''))] = M.read(f, n)
   end
   return out
end

--- Writes a table of tensors as an archive; number keys i become arr_(i-1), as NumPy names them.
function M.writeArchive(file, tensors)
   if type(tensors) ~= 'table' or torch.typename(tensors) then error(('[save] npz; got a %s, need a table of tensors'):format(torch.type(tensors)), 0) end
   local members = {}
   for key, x in pairs(tensors) do
      if not isTensor(x) then error(('[save] npz; got a %s at %s, need a tensor'):format(torch.type(x), tostring(key)), 0) end
      local s, kind = M.elements(x), x:type():match('%.(%w+)Tensor')
      members[#members + 1] = {
         name = (type(key) == 'number' and ('arr_%d'):format(key - 1) or tostring(key)) .. '.npy',
         head = header(x), keep = s, pointer = s and torch.data(s), bytes = x:nElement() * sizes[kind],
         write = function(f) f['write' .. kind](f, s) end,
      }
   end
   table.sort(members, function(a, b) return a.name < b.name end)
   zip.write(file, members)
end

return M
