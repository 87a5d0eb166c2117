-- Serialization: the .t7 format, binary and ascii (Lua value <-> file).
-- A value is a type number and its data. Tables, functions and torch objects carry a reference number: the first time their contents follow,
-- later the number alone, so that sharing and cycles survive. Sizes, offsets and strides of a file are checked before memory is touched.
local C = require 'relume.core'
local torch = C.torch
local M = {}
package.loaded['torch.serialize'] = M

local NIL, NUMBER, STRING, TABLE, TORCH, BOOLEAN, FUNCTION, LEGACY_FUNCTION, RECUR_FUNCTION = 0, 1, 2, 3, 4, 5, 6, 7, 8

-- State of a file between calls: reference numbers given and objects read. Gone when the file is.
local states = setmetatable({}, {__mode = 'k'})

local function stateOf(file)
   local s = states[file]
   if not s then
      s = {written = {}, count = 0, read = {}, keep = {}, trusted = true, path = {}, label = {}, upvalues = {}, upvalueCount = 0, joined = {},
         depth = 0}
      states[file] = s
   end
   return s
end

-- What identifies an object: storages and tensors by the core's object (two userdata may stand for one), the rest by itself.
local function identity(object)
   if torch.isStorage(object) then return 's' .. C.pointer(object) end
   return object
end

-- Depth ----------------------------------------------------------------------------------------------------------------------------

-- A value inside a value is a call inside a call, and Lua's stack ends near 65 000 slots: every STEP levels the rest goes on in a coroutine,
-- which has a stack of its own. Coroutines inside one another use the C stack: the deepest value is refused long before that ends.
local STEP, DEEPEST = 400, 40000

local function deeper(s, what, f, file, object)
   local depth = s.depth + 1
   if depth > DEEPEST then error(('[%s] nesting; got more than %d levels, need fewer'):format(what, DEEPEST), 0) end
   s.depth = depth
   local value
   if depth % STEP == 0 then
      local ok, result = coroutine.resume(coroutine.create(f), file, object)
      if not ok then error(result, 0) end
      value = result
   else
      value = f(file, object)
   end
   s.depth = depth - 1
   return value
end

-- Writing ------------------------------------------------------------------------------------------------------------------------

local write

local function member(object, name)
   if type(object) == 'userdata' then -- a tds.Hash may hold a key of this name
      local mt = debug.getmetatable(object)
      local m = mt and rawget(mt, name)
      if m then return m end
   end
   local ok, m = pcall(function() return object[name] end)
   return ok and m or nil
end

-- Number of upvalue i of f in this file: two closures that share a variable write the same number.
local function upvalueNumber(s, f, i)
   local id = debug.upvalueid(f, i)
   if not s.upvalues[id] then
      s.upvalueCount = s.upvalueCount + 1
      s.upvalues[id] = s.upvalueCount
   end
   return s.upvalues[id]
end

local function writeUpvalues(file, f)
   local s, upvalues = stateOf(file), {}
   for i = 1, math.huge do
      local name, value = debug.getupvalue(f, i)
      if not name then break end
      if name == '_ENV' then value = nil end
      upvalues[i] = {name = name, id = upvalueNumber(s, f, i), value = value}
      s.label[upvalues[i]] = 'upvalue'
   end
   s.label[upvalues] = 'upvalues'
   write(file, upvalues)
end

-- Where the object that is being written hangs: <?>.field.field[3].
local function where(file)
   local path, out = stateOf(file).path, {}
   for i, k in ipairs(path) do
      out[i] = type(k) == 'string' and (i > 1 and '.' or '') .. k or '[' .. tostring(k) .. ']'
   end
   if type(path[1]) ~= 'string' or path[1]:sub(1, 1) ~= '<' then table.insert(out, 1, '<?>' .. (type(path[1]) == 'string' and '.' or '')) end
   return ' (at ' .. table.concat(out) .. ')'
end

local function writeFunction(file, f)
   local ok, dumped = pcall(string.dump, f)
   if not ok then error('[save] function without bytecode; got ' .. tostring(f) .. ', need a Lua function' .. where(file), 0) end
   file:writeInt(#dumped)
   file:writeBytes(dumped)
   writeUpvalues(file, f)
end

local function writeTable(file, t)
   local n = 0
   for _ in pairs(t) do n = n + 1 end
   file:writeInt(n)
   local s = stateOf(file)
   local path, label = s.path, s.label[t]
   local depth = #path
   for k, v in pairs(t) do
      write(file, k)
      if label ~= 'upvalue' then path[depth + 1] = label and v.name or k end
      write(file, v)
      path[depth + 1] = nil
   end
end

-- Fields of a class object without a write method: those whose values can be written.
local function plainFields(object)
   local fields = {}
   for k, v in next, object do
      if M.writable(v) then
         fields[k] = v
      else
         io.stderr:write(('[save] field %s of %s left out: type %s\n'):format(tostring(k), torch.typename(object), type(v)))
      end
   end
   return fields
end

local function writeTorch(file, object)
   local version = 'V ' .. (object.__version or 1)
   local name = torch.typename(object)
   file:writeInt(#version)
   file:writeBytes(version)
   file:writeInt(#name)
   file:writeBytes(name)
   local f = member(object, '__write') or member(object, 'write')
   if f then return f(object, file) end
   if type(object) ~= 'table' then error('[save] type ' .. name .. ' has no write method; got ' .. type(object) .. where(file), 0) end
   write(file, plainFields(object))
end

--- True for values that can be written.
function M.writable(object)
   local t = type(object)
   if t == 'nil' or t == 'number' or t == 'string' or t == 'boolean' or t == 'table' then return true end
   if t == 'function' then return pcall(string.dump, object) end
   return torch.typename(object) ~= nil and member(object, 'write') ~= nil
end

-- Type number of a value that carries a reference number.
local function kindOf(object, file)
   if torch.typename(object) then return TORCH end
   local t = type(object)
   if t == 'table' then return TABLE end
   if t == 'function' then return RECUR_FUNCTION end
   error('[save] type ' .. t .. ' cannot be written; got ' .. tostring(object) .. ', need a Lua value or a torch object' .. where(file), 0)
end

local contents = {[TABLE] = writeTable, [TORCH] = writeTorch, [RECUR_FUNCTION] = writeFunction}

-- What the hook puts in an object's place; asked once an object, so that sharing stays.
local function replaced(s, object)
   if object == nil or object ~= object then return object end
   local new = s.hooked[object]
   if new == nil then
      new = s.hook(object)
      s.hooked[object] = new
   end
   return new
end

function write(file, object)
   local s = stateOf(file)
   if s.hook then object = replaced(s, object) end
   local t = type(object)
   if t == 'nil' then return file:writeInt(NIL) end
   if t == 'number' then file:writeInt(NUMBER) return file:writeDouble(object) end
   if t == 'boolean' then file:writeInt(BOOLEAN) return file:writeBool(object) end
   if t == 'string' then
      file:writeInt(STRING)
      file:writeInt(#object)
      return file:writeBytes(object)
   end
   local kind = kindOf(object, file)
   local id = identity(object)
   local index = file:isReferenced() and s.written[id]
   file:writeInt(kind)
   if index then return file:writeInt(index) end
   s.count = s.count + 1
   s.written[id] = s.count
   s.keep[s.count] = object -- keeps addresses in use
   file:writeInt(s.count)
   deeper(s, 'save', contents[kind], file, object)
end
M.write = write

--- Writes an object; `name` stands for it in messages, hook(object) -> what is written in its place, for everything below it too.
function M.writeObject(file, object, name, hook)
   local s = stateOf(file)
   if s.active then return write(file, object) end -- from inside an object's write method
   s.active, s.hook, s.hooked, s.depth = true, hook, {}, 0
   s.path = {type(name) == 'string' and '<' .. name .. '>' or nil}
   local ok, err = pcall(M.writeObject, file, object)
   s.active, s.hook, s.path = false, nil, {}
   if not ok then error(err, 0) end
end

--- The tensor's part of a file: dimensions, sizes, strides, offset, storage.
function M.writeTensor(self, file)
   local sizes, strides = self:size(), self:stride()
   file:writeInt(#sizes)
   file:writeLong(sizes)
   file:writeLong(strides)
   file:writeLong(self:storageOffset())
   write(file, #sizes > 0 and self:storage() or nil)
end

--- The storage's part of a file: size, elements.
function M.writeStorage(self, file)
   file:writeLong(self:size())
   file['write' .. torch.typename(self):match('torch%.(.-)Storage')](file, self)
end

-- Reading ------------------------------------------------------------------------------------------------------------------------

local read

local function bad(what, ...)
   error('[load] ' .. what:format(...), 0)
end

local function readBlock(file)
   local n = file:readInt()
   if n < 0 then bad('negative length; got %d, need 0 or more', n) end
   return file:readBytes(n)
end

-- A function whose bytecode this Lua does not take: calling it says so.
local function stub(message)
   return function()
      error('[load] function could not be loaded: ' .. tostring(message), 2)
   end
end

-- Files of this format number their variables: those with one number become one variable again.
local function joinUpvalue(s, f, i, id)
   local other = s.joined[id]
   if other then debug.upvaluejoin(f, i, other.f, other.i) else s.joined[id] = {f = f, i = i} end
end

local function setUpvalues(s, f, upvalues, kind)
   if type(upvalues) ~= 'table' then return end
   for i, u in pairs(upvalues) do
      if type(i) == 'number' then
         local value = u
         if kind == RECUR_FUNCTION then
            if type(u) ~= 'table' then bad('upvalue %d; got %s, need a table', i, type(u)) end
            value = u.value
            if u.name == '_ENV' then value = _G end
         end
         local exists = debug.setupvalue(f, i, value)
         if exists and kind == RECUR_FUNCTION and type(u.id) == 'number' and u.id == u.id then joinUpvalue(s, f, i, u.id) end
      end
   end
end

local function readFunction(file, kind, index)
   local s = stateOf(file)
   local dumped = readBlock(file)
   local f, err
   if not s.trusted then
      bad('function in a file that is not trusted; got bytecode of %d bytes, need {trusted = true}', #dumped)
   elseif dumped:sub(1, 3) == '\27LJ' then
      f, err = loadstring(dumped)
   else
      err = 'bytecode of another Lua'
   end
   local loaded = f ~= nil
   f = f or stub(err)
   if index then s.read[index] = f end
   local upvalues = read(file)
   if loaded then setUpvalues(s, f, upvalues, kind) end
   return f
end

local function readPlainFunction(file) return readFunction(file, FUNCTION) end
local function readLegacyFunction(file, index) return readFunction(file, LEGACY_FUNCTION, index) end
local function readRecursiveFunction(file, index) return readFunction(file, RECUR_FUNCTION, index) end

local function readTable(file, index)
   local s = stateOf(file)
   local n = file:readInt()
   if n < 0 then bad('negative table size; got %d, need 0 or more', n) end
   local t = {}
   s.read[index] = t
   for _ = 1, n do
      local k = read(file)
      local v = read(file)
      if k == nil or k ~= k then bad('table key; got %s, need a value', tostring(k)) end
      t[k] = v
   end
   return t
end

-- nn classes load with their package; programs' own must be defined before.
local function factoryOf(name)
   local f = torch.factory(name)
   if not f then
      local package = name:match('^([%w_]+)%.')
      if package == 'nn' or package == 'nngraph' or package == 'optim' or package == 'tds' then
         pcall(require, package)
         f = torch.factory(name)
      end
   end
   if not f then bad('unknown class; got %s, need it defined by torch.class before loading', name) end
   return f
end

local function readTorch(file, index)
   local s = stateOf(file)
   local version = readBlock(file)
   local number = tonumber(version:match('^V (.*)$'))
   local name = number and readBlock(file) or version
   local object = factoryOf(name)()
   s.read[index] = object
   local f = member(object, '__read') or member(object, 'read')
   if f then
      local ok, err = pcall(f, object, file, number or 0)
      if not ok then
         if type(err) ~= 'string' or err:find '%[load%]' then error(err, 0) end
         bad('contents of %s; got what its class does not read: %s', name, err)
      end
   elseif type(object) == 'table' then
      local fields = read(file)
      if type(fields) ~= 'table' then bad('fields of %s; got %s, need a table', name, type(fields)) end
      for k, v in pairs(fields) do object[k] = v end
   else
      bad('class %s has no read method; got %s', name, type(object))
   end
   return s.read[index]
end

function read(file)
   local kind = file:readInt()
   if kind == NIL then return nil end
   if kind == NUMBER then return file:readDouble() end
   if kind == BOOLEAN then return file:readBool() end
   if kind == STRING then return readBlock(file) end
   local s = stateOf(file)
   if kind == FUNCTION then return deeper(s, 'load', readPlainFunction, file) end
   if kind ~= TABLE and kind ~= TORCH and kind ~= RECUR_FUNCTION and kind ~= LEGACY_FUNCTION then bad('type number; got %s, need 0 to 8', tostring(kind)) end
   local index = file:readInt()
   local known = s.read[index]
   if known ~= nil and file:isReferenced() then return known end
   if kind == TABLE then return deeper(s, 'load', readTable, file, index) end
   if kind == TORCH then return deeper(s, 'load', readTorch, file, index) end
   return deeper(s, 'load', kind == LEGACY_FUNCTION and readLegacyFunction or readRecursiveFunction, file, index)
end
M.read = read

--- Reads an object; a program that goes on after an error begins at the top again.
function M.readObject(file)
   local s = stateOf(file)
   if s.active then return read(file) end -- from inside an object's read method
   s.active, s.depth = true, 0
   local ok, value = pcall(read, file)
   s.active = false
   if not ok then error(value, 0) end
   return value
end

-- Elements of storage that sizes and strides reach, from the offset; checked so that no product overflows.
local function span(sizes, strides)
   local reach, empty = 1, false
   for d = 1, #sizes do
      local n, st = sizes[d], strides[d]
      if n < 0 or n > 2 ^ 52 or st < 0 or st > 2 ^ 52 then bad('sizes and strides; got %g and %g in dimension %d, need 0 or more', n, st, d) end
      if n == 0 then empty = true end
      reach = reach + (n - 1) * st
   end
   return empty and 0 or reach
end

--- Reads a tensor's part; the geometry must lie inside the storage.
function M.readTensor(self, file)
   local nd = file:readInt()
   if nd < 0 or nd > 12 then bad('dimensions; got %d, need 0 to 12', nd) end
   local sizes, strides = file:readLong(nd), file:readLong(nd)
   local offset = file:readLong()
   local storage = read(file)
   if nd == 0 or storage == nil then
      if nd > 0 and span(sizes, strides) > 0 then bad('tensor without storage; got %d dimensions, need a storage', nd) end
      if storage ~= nil and torch.isStorage(storage) then self:set(storage, 1, torch.LongStorage{0}) end
      return self
   end
   local want = torch.typename(self):gsub('Tensor$', 'Storage')
   if torch.typename(storage) ~= want then bad('storage type; got %s, need %s', torch.type(storage), want) end
   local reach = span(sizes, strides)
   if offset < 1 or (reach > 0 and offset - 1 + reach > storage:size()) then
      bad('tensor outside its storage; got offset %g and %g elements, need at most %d', offset, reach, storage:size())
   end
   return self:set(storage, offset, sizes, strides)
end

local bytes = {Byte = 1, Char = 1, Short = 2, Int = 4, Long = 8, Half = 2, BFloat16 = 2, Float = 4, Double = 8}

--- Reads a storage's part; the file must hold as many bytes before memory is taken.
function M.readStorage(self, file)
   local n = file:readLong()
   local kind = torch.typename(self):match('torch%.(.-)Storage')
   local left = file:left()
   local least = file:isBinary() and bytes[kind] or (bytes[kind] == 1 and 1 or 2)
   if n < 0 or n ~= math.floor(n) or (left and n * least > left + 8) then
      bad('storage size; got %g elements of %s, need what the file holds (%g bytes left)', n, kind, left or -1)
   end
   self:resize(n)
   file['read' .. kind](file, self)
   return self
end

-- Whole files ----------------------------------------------------------------------------------------------------------------------

local modes = {binary = true, ascii = true}

-- Formats of others: name -> module and its functions to read (file, size) and to write (file, object).
local formats = {
   npy = {'torch.npy', 'read', 'write'}, npz = {'torch.npy', 'readArchive', 'writeArchive'}, safetensors = {'torch.safetensors', 'read', 'write'},
   pytorch = {'torch.pickle', 'read'},
}

local function openFile(name, mode, form, long_size)
   require 'torch.File'
   if not modes[form] and not formats[form] then
      error('[' .. (mode == 'r' and 'load' or 'save') .. '] form; got ' .. tostring(form) ..
         ", need 'binary', 'ascii', 'npy', 'npz' or 'safetensors'" .. (mode == 'r' and " or 'pytorch'" or ''), 3)
   end
   local file = torch.DiskFile(name, mode)
   file[modes[form] and form or 'binary'](file)
   if long_size then file:longSize(long_size) end
   return file
end

local function finish(file, ok, value)
   states[file] = nil
   file:close()
   if not ok then error(value, 3) end
   return value
end

-- Which of the formats of others a file has, by its first bytes; none begins like a .t7 file.
local function formOf(file, size)
   if size < 10 then return nil end
   local s = file:readBytes(10)
   file:seek(1)
   if s:sub(1, 6) == '\147NUMPY' then return 'npy' end
   if s:sub(9, 9) == '{' then
      local n = 0
      for i = 8, 1, -1 do n = n * 256 + s:byte(i) end
      if n >= 2 and n + 8 <= size then return 'safetensors' end
   end
   if s:sub(1, 4) ~= 'PK\3\4' then return nil end
   for _, e in ipairs(require('torch.zip').entries(file, size)) do
      if e.name:find('data%.pkl$') then return 'pytorch' end
   end
   return 'npz'
end

local function sizeOf(file)
   file:seekEnd()
   local n = file:position() - 1
   file:seek(1)
   return n
end

-- The value of a file in a format of others; nothing when it has none.
local function readForeign(file, form)
   local size = sizeOf(file)
   form = form or formOf(file, size)
   if not form then
      file:seek(1)
      return false
   end
   return true, require(formats[form][1])[formats[form][2]](file, size)
end

--- torch.save(name, object [, 'binary' | 'ascii' | 'npy' | 'npz' | 'safetensors'] [, referenced]); a name that ends in .npy, .npz or .safetensors
-- says so by itself. npy takes a tensor, npz and safetensors a table of tensors.
-- Old code may pass `referenced = false` to write without sharing.
function torch.save(name, object, form, referenced)
   form = form or (type(name) == 'string' and formats[name:match('%.(%a+)$') or ''] and name:match('%.(%a+)$')) or 'binary'
   if form == 'pytorch' then error("[save] form; got pytorch, need 'binary', 'ascii', 'npy', 'npz' or 'safetensors'", 2) end
   local file = openFile(name, 'w', form)
   if formats[form] then return finish(file, pcall(require(formats[form][1])[formats[form][3]], file, object)) end
   if referenced == false then file:referenced(false) end
   finish(file, pcall(M.writeObject, file, object))
end

--- torch.load(name [, 'binary' | 'ascii' | 'b32' | 'b64' | 'npy' | 'npz' | 'safetensors' | 'pytorch'] [, long size]) or
-- torch.load(name, {trusted =, format =}). Without a form, .npy, .npz, .safetensors and PyTorch's files are known by their first bytes.
-- `trusted = false` refuses functions, so that loading runs no code of the file.
function torch.load(name, form, long_size)
   local options = {}
   if type(form) == 'table' then form, options = form.format, form
   elseif type(long_size) == 'table' then long_size, options = nil, long_size end
   if form == 'b32' then form, long_size = 'binary', 4
   elseif form == 'b64' then form, long_size = 'binary', 8 end
   local file = openFile(name, 'r', form or 'binary', long_size)
   if formats[form] or not form then
      local ok, found, value = pcall(readForeign, file, form)
      if not ok or found then return finish(file, ok, ok and value or found) end
   end
   stateOf(file).trusted = options.trusted ~= false
   return finish(file, pcall(M.readObject, file))
end

torch.saveobj, torch.loadobj = torch.save, torch.load

--- Object -> string (binary form by default).
function torch.serialize(object, form)
   return torch.serializeToStorage(object, form):string()
end

--- Object -> CharStorage.
function torch.serializeToStorage(object, form)
   require 'torch.File'
   local file = torch.MemoryFile()
   file[form or 'binary'](file)
   local ok, err = pcall(M.writeObject, file, object)
   local storage = ok and file:storage()
   finish(file, ok, err)
   return storage
end

--- String -> object.
function torch.deserialize(s, form, options)
   local storage = torch.CharStorage()
   storage:string(s)
   return torch.deserializeFromStorage(storage, form, options)
end

--- CharStorage -> object.
function torch.deserializeFromStorage(storage, form, options)
   require 'torch.File'
   local file = torch.MemoryFile(storage, 'r')
   file[form or 'binary'](file)
   stateOf(file).trusted = not (type(options) == 'table' and options.trusted == false)
   return finish(file, pcall(M.readObject, file))
end

return M
