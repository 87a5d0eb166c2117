-- Zip archives, as .npz and PyTorch's files are: members stored or deflated, with the 64-bit extensions (file <-> members).
-- Deflated members are inflated by zlib, opened when the first one is met.
local ffi = require 'ffi'
local bit = require 'bit'

local M = {}

local LOCAL, CENTRAL, END, END64, LOCATOR = 'PK\3\4', 'PK\1\2', 'PK\5\6', 'PK\6\6', 'PK\6\7'
local MOST = 2^53

local function bad(fmt, ...) error('[load] ' .. fmt:format(...), 0) end

-- Little-endian number of n bytes at position i of s.
local function number(s, i, n)
   local v = 0
   for k = n, 1, -1 do v = v * 256 + s:byte(i + k - 1) end
   return v
end

local function bytesOf(v, n)
   local t = {}
   for k = 1, n do
      t[k] = string.char(v % 256)
      v = math.floor(v / 256)
   end
   return table.concat(t)
end

-- n bytes of file at position `at` (0: the first), which must be there.
local function bytesAt(file, at, n, size, what)
   if at < 0 or n < 0 or at + n > size then bad('%s; got bytes %.0f to %.0f, need at most %.0f', what, at, at + n, size) end
   if n == 0 then return '' end
   file:seek(at + 1)
   return file:readBytes(n)
end

-- Position, size and entry count of the directory, from the record at the end of the archive.
local function directory(file, size)
   local tail = math.min(size, 65535 + 22)
   local s = bytesAt(file, size - tail, tail, size, 'end of the archive')
   local at
   for i = #s - 21, 1, -1 do
      if s:sub(i, i + 3) == END then
         at = i
         break
      end
   end
   if not at then bad('end record of the zip archive; got none, need one') end
   local count, length, offset = number(s, at + 10, 2), number(s, at + 12, 4), number(s, at + 16, 4)
   local record = size - tail + at - 1
   if (count == 0xffff or length == 0xffffffff or offset == 0xffffffff) and record >= 20 then
      local locator = bytesAt(file, record - 20, 20, size, '64-bit locator')
      if locator:sub(1, 4) == LOCATOR then
         local wide = bytesAt(file, number(locator, 9, 8), 56, size, '64-bit end record')
         if wide:sub(1, 4) ~= END64 then bad('64-bit end record; got another signature, need PK 6 6') end
         count, length, offset = number(wide, 33, 8), number(wide, 41, 8), number(wide, 49, 8)
      end
   end
   return offset, length, count
end

-- Sizes and position of an entry that stand in its 64-bit extra field.
local function widen(e, extra)
   local i = 1
   while i + 3 <= #extra do
      local id, n = number(extra, i, 2), number(extra, i + 2, 2)
      if id == 1 and i + 3 + n <= #extra then
         local k, last = i + 4, i + 4 + n
         for _, field in ipairs {'size', 'packed', 'at'} do
            if e[field] == 0xffffffff and k + 8 <= last then
               e[field] = number(extra, k, 8)
               k = k + 8
            end
         end
      end
      i = i + 4 + n
   end
end

--- Entries of the archive in file (a torch.File): a list of {name =, size =, packed =, method =, at =}, also by name.
function M.entries(file, size)
   local offset, length, count = directory(file, size)
   local s = bytesAt(file, offset, length, size, 'directory of the zip archive')
   local list, i = {}, 1
   for k = 1, count do
      if i + 45 > #s or s:sub(i, i + 3) ~= CENTRAL then bad('directory of the zip archive; got %d entries, need %.0f', k - 1, count) end
      local name, extra, note = number(s, i + 28, 2), number(s, i + 30, 2), number(s, i + 32, 2)
      local e = {flags = number(s, i + 8, 2), method = number(s, i + 10, 2), crc = number(s, i + 16, 4), packed = number(s, i + 20, 4),
         size = number(s, i + 24, 4), at = number(s, i + 42, 4), name = s:sub(i + 46, i + 45 + name)}
      if #e.name ~= name then bad('name of a member; got %d bytes, need %d', #e.name, name) end
      widen(e, s:sub(i + 46 + name, i + 45 + name + extra))
      list[k], list[e.name] = e, e
      i = i + 46 + name + extra + note
   end
   return list
end

local zlib
local function openZlib()
   if zlib then return zlib end
   ffi.cdef [[
      typedef struct { const unsigned char *next_in; unsigned int avail_in; unsigned long total_in; unsigned char *next_out; unsigned int avail_out;
         unsigned long total_out; const char *msg; void *state; void *zalloc; void *zfree; void *opaque; int data_type; unsigned long adler;
         unsigned long reserved; } relume_z_stream;
      int inflateInit2_(relume_z_stream *s, int bits, const char *version, int size);
      int inflate(relume_z_stream *s, int flush);
      int inflateEnd(relume_z_stream *s);
      const char *zlibVersion(void);
   ]]
   local ok, lib = pcall(ffi.load, 'libz.so.1')
   if not ok then ok, lib = pcall(ffi.load, 'z') end
   if not ok then bad('compressed member; got no zlib, need it installed (Debian: zlib1g)') end
   zlib = lib
   return zlib
end

-- Inflates packed into a new CharStorage of size bytes.
local function inflate(packed, size, name)
   local z = openZlib()
   if size > 1100 * #packed + 1024 then bad('member %s; got %d bytes that claim to hold %.0f', name, #packed, size) end
   local out = torch.CharStorage(math.max(size, 1))
   local s = ffi.new 'relume_z_stream'
   s.next_in, s.avail_in = packed, #packed
   s.next_out, s.avail_out = ffi.cast('unsigned char *', torch.data(out)), size
   if z.inflateInit2_(s, -15, z.zlibVersion(), ffi.sizeof(s)) ~= 0 then bad('member %s; zlib did not start', name) end
   local rc = z.inflate(s, 4)
   local made = tonumber(s.total_out)
   z.inflateEnd(s)
   if rc ~= 1 or made ~= size then bad('member %s; got %d inflated bytes, need %.0f', name, made, size) end
   return out
end

--- A torch.File that stands at the first byte of a member, and the member's size in bytes.
function M.open(file, size, e)
   if bit.band(e.flags, 1) ~= 0 then bad('member %s; got an encrypted one, need plain', e.name) end
   local head = bytesAt(file, e.at, 30, size, 'member ' .. e.name)
   if head:sub(1, 4) ~= LOCAL then bad('member %s; got another signature, need PK 3 4', e.name) end
   local at = e.at + 30 + number(head, 27, 2) + number(head, 29, 2)
   if e.size > MOST or at + e.packed > size then bad('member %s; got %.0f bytes at %.0f, need them inside of %.0f', e.name, e.packed, at, size) end
   if e.method == 0 then
      if e.packed ~= e.size then bad('member %s; got %.0f bytes, need %.0f', e.name, e.packed, e.size) end
      file:seek(at + 1)
      return file, e.size
   elseif e.method == 8 then
      local packed = bytesAt(file, at, e.packed, size, 'member ' .. e.name)
      return torch.MemoryFile(inflate(packed, e.size, e.name), 'r'):binary(), e.size
   end
   bad('member %s; got compression method %d, need 0 (stored) or 8 (deflated)', e.name, e.method)
end

-- Writing ------------------------------------------------------------------------------------------------------------------------

local crcTable
local function crcRow()
   crcTable = ffi.new 'uint32_t[256]'
   for n = 0, 255 do
      local c = n
      for _ = 1, 8 do c = bit.band(c, 1) ~= 0 and bit.bxor(0xedb88320, bit.rshift(c, 1)) or bit.rshift(c, 1) end
      crcTable[n] = c
   end
end

-- CRC-32 of n bytes at p, going on from crc.
local function crc32(crc, p, n)
   if not crcTable then crcRow() end
   local c = bit.bnot(crc)
   for i = 0, n - 1 do c = bit.bxor(crcTable[bit.band(bit.bxor(c, p[i]), 255)], bit.rshift(c, 8)) end
   return bit.bnot(c)
end

--- Writes an archive of stored members. members: list of {name =, head = string, pointer = data or nil, bytes = its size, write = function(file)}.
function M.write(file, members)
   local entries, at = {}, 0
   for k, m in ipairs(members) do
      local crc = crc32(0, ffi.cast('const uint8_t *', m.head), #m.head)
      if m.bytes > 0 then crc = crc32(crc, ffi.cast('const uint8_t *', m.pointer), m.bytes) end
      local size = #m.head + m.bytes
      local wide = size >= 0xffffffff or at >= 0xffffffff
      local n = wide and bytesOf(0xffffffff, 4) or bytesOf(size, 4)
      local extra = wide and bytesOf(1, 2) .. bytesOf(24, 2) .. bytesOf(size, 8):rep(2) .. bytesOf(at, 8) or ''
      local common = bytesOf(wide and 45 or 20, 2) .. bytesOf(0, 6) .. bytesOf(0x21, 2) .. bytesOf(crc % 2^32, 4) .. n .. n ..
         bytesOf(#m.name, 2) .. bytesOf(#extra, 2)
      file:writeBytes(LOCAL .. common .. m.name .. extra .. m.head)
      if m.bytes > 0 then m.write(file) end
      entries[k] = CENTRAL .. bytesOf(wide and 45 or 20, 2) .. common .. bytesOf(0, 10) .. bytesOf(wide and 0xffffffff or at, 4) .. m.name .. extra
      at = at + 30 + #m.name + #extra + size
   end
   local dir = table.concat(entries)
   file:writeBytes(dir)
   local wide = at >= 0xffffffff or #members >= 0xffff
   if wide then
      file:writeBytes(END64 .. bytesOf(44, 8) .. bytesOf(45, 2):rep(2) .. bytesOf(0, 8) .. bytesOf(#members, 8):rep(2) .. bytesOf(#dir, 8) ..
         bytesOf(at, 8) .. LOCATOR .. bytesOf(0, 4) .. bytesOf(at + #dir, 8) .. bytesOf(1, 4))
   end
   file:writeBytes(END .. bytesOf(0, 4) .. bytesOf(math.min(#members, 0xffff), 2):rep(2) .. bytesOf(#dir, 4) ..
      bytesOf(wide and 0xffffffff or at, 4) .. bytesOf(0, 2))
end

return M
