-- safetensors: a JSON header and the elements of named tensors behind it (file <-> tensors).
local json = require 'torch.json'
local npy = require 'torch.npy'

local M = {}
local kinds = {
   F64 = 'Double', F32 = 'Float', F16 = 'Half', BF16 = 'BFloat16', I64 = 'Long', I32 = 'Int', I16 = 'Short', I8 = 'Char', U8 = 'Byte', BOOL = 'Byte',
}
local bytes = setmetatable({BFloat16 = 2}, {__index = npy.bytes})
local names = {}
for name, kind in pairs(kinds) do
   if name ~= 'BOOL' then names[kind] = name end
end
local MOST = 100e6 -- bytes of a header, as the reference implementation allows

local function bad(fmt, ...) error('[load] safetensors: ' .. fmt:format(...), 0) end

-- The elements' place of one entry: checked against type, shape and the file before memory is taken.
local function place(name, e, room)
   local kind = type(e) == 'table' and kinds[e.dtype]
   if not kind then bad('%s; got type %s, need one of F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL', name, tostring(type(e) == 'table' and e.dtype)) end
   local from = type(e.data_offsets) == 'table' and e.data_offsets[1]
   local to = from and e.data_offsets[2]
   if type(e.shape) ~= 'table' or type(from) ~= 'number' or type(to) ~= 'number' then bad('%s; got no shape or data_offsets, need both', name) end
   local count = 1
   for _, n in ipairs(e.shape) do
      if type(n) ~= 'number' or n < 0 or n % 1 ~= 0 then bad('%s; got size %s, need a whole number', name, tostring(n)) end
      count = count * n
   end
   if from < 0 or to > room or to - from ~= count * bytes[kind] then
      bad('%s; got bytes %.0f to %.0f of %.0f, need %.0f', name, from, to, room, count * bytes[kind])
   end
   return kind, from, count
end

--- Reads all tensors: a table by name; `__metadata__` is kept where the file has it. A shape of [] gives one element.
function M.read(file, size)
   if size < 10 then bad('file of %.0f bytes', size) end
   local s, n = file:readBytes(8), 0
   for i = 8, 1, -1 do n = n * 256 + s:byte(i) end
   if n > MOST or n + 8 > size then bad('header; got %.0f bytes, need at most %.0f', n, math.min(MOST, size - 8)) end
   local ok, head = pcall(json.decode, file:readBytes(n))
   if not ok or type(head) ~= 'table' then bad('header; got %s, need JSON', tostring(head)) end
   local out = {}
   for name, e in pairs(head) do
      if name == '__metadata__' then out[name] = e
      else
         local kind, from, count = place(name, e, size - 8 - n)
         local storage = torch[kind .. 'Storage'](count)
         if count > 0 then
            file:seek(8 + n + from + 1)
            file['read' .. kind](file, storage)
         end
         local shape = #e.shape > 0 and e.shape or {1}
         out[name] = torch[kind .. 'Tensor'](storage, 1, torch.LongStorage(shape))
      end
   end
   return out
end

--- Writes a table of tensors by name; `__metadata__` may hold a table of strings. Wide types come first, so that all elements are aligned.
function M.write(file, tensors)
   if type(tensors) ~= 'table' or torch.typename(tensors) then
      error(('[save] safetensors; got a %s, need a table of tensors'):format(torch.type(tensors)), 0)
   end
   local list = {}
   for name, x in pairs(tensors) do
      if name ~= '__metadata__' then
         local kind = type(name) == 'string' and torch.isTensor(x) and x:type():match('^torch%.(%w+)Tensor$')
         if not kind or not names[kind] then
            error(('[save] safetensors; got %s at %s, need CPU tensors by name'):format(torch.type(x), tostring(name)), 0)
         end
         list[#list + 1] = {name = name, kind = kind, x = x}
      end
   end
   table.sort(list, function(a, b)
      if bytes[a.kind] ~= bytes[b.kind] then return bytes[a.kind] > bytes[b.kind] end
      return a.name < b.name
   end)
   local parts, at = {}, 0
   if tensors.__metadata__ then parts[1] = '"__metadata__":' .. json.encode(tensors.__metadata__) end
   for _, e in ipairs(list) do
      local shape, n = {}, e.x:nElement() * bytes[e.kind]
      for d = 1, e.x:dim() do shape[d] = ('%d'):format(e.x:size(d)) end
      if #shape == 0 and n == 0 then shape[1] = '0' end
      parts[#parts + 1] = ('%s:{"dtype":"%s","shape":[%s],"data_offsets":[%.0f,%.0f]}'):format(json.encode(e.name), names[e.kind],
         table.concat(shape, ','), at, at + n)
      at = at + n
   end
   local head = '{' .. table.concat(parts, ',') .. '}'
   head = head .. (' '):rep(-#head % 8)
   local n, length = #head, {}
   for i = 1, 8 do
      length[i] = string.char(n % 256)
      n = math.floor(n / 256)
   end
   file:writeBytes(table.concat(length) .. head)
   for _, e in ipairs(list) do
      local s = npy.elements(e.x)
      if s then file['write' .. e.kind](file, s) end
   end
end

return M
