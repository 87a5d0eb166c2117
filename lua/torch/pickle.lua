-- PyTorch's zip files: state dicts and checkpoints of tensors, numbers, strings, lists and dictionaries (file -> Lua value). No code of the file
-- is run: the few functions that rebuild tensors are known by name, every other one is refused.
-- Opcodes: Python's pickletools; layout: torch/serialization.py's `data.pkl`, `data/<key>`, `byteorder`.
local zip = require 'torch.zip'

local M = {}
local MARK, NONE = {}, {}

local function bad(fmt, ...) error('[load] pickle: ' .. fmt:format(...), 0) end

local storages = {
   DoubleStorage = {'Double', 8}, FloatStorage = {'Float', 4}, HalfStorage = {'Half', 2}, BFloat16Storage = {'BFloat16', 2}, LongStorage = {'Long', 8},
   IntStorage = {'Int', 4}, ShortStorage = {'Short', 2}, CharStorage = {'Char', 1}, ByteStorage = {'Byte', 1}, BoolStorage = {'Byte', 1},
}

local function plain(v)
   if v == NONE then return nil end
   return v
end

-- Reader of one pickle ------------------------------------------------------------------------------------------------------------

local Reader = {}
Reader.__index = Reader

function Reader:take(n)
   if n < 0 or self.at + n - 1 > #self.s then bad('ends early; got %d bytes, need %.0f', #self.s, self.at + n - 1) end
   local s = self.s:sub(self.at, self.at + n - 1)
   self.at = self.at + n
   return s
end

function Reader:int(n, signed)
   local s, v = self:take(n), 0
   for i = n, 1, -1 do v = v * 256 + s:byte(i) end
   if signed and v >= 2^(8 * n - 1) then v = v - 2^(8 * n) end
   return v
end

function Reader:line()
   local stop = self.s:find('\n', self.at, true)
   if not stop then bad('line without an end') end
   local s = self.s:sub(self.at, stop - 1)
   self.at = stop + 1
   return s
end

function Reader:push(v) self.n = self.n + 1; self.stack[self.n] = v end

function Reader:pop()
   if self.n < 1 then bad('empty stack') end
   local v = self.stack[self.n]
   self.stack[self.n], self.n = nil, self.n - 1
   return v
end

-- Values above the last mark, which goes too.
function Reader:marked()
   local list, from = {}, self.n
   while from > 0 and self.stack[from] ~= MARK do from = from - 1 end
   if from == 0 then bad('no mark') end
   for i = from + 1, self.n do list[i - from] = self.stack[i] end
   for i = self.n, from, -1 do self.stack[i] = nil end
   self.n = from - 1
   return list
end

function Reader:top(kind)
   local v = self.stack[self.n]
   if type(v) ~= 'table' or v == MARK or v == NONE or v.func then bad('%s; got a %s', kind, type(v)) end
   return v
end

-- Lists, tuples and dictionaries are tables; keys that are whole numbers stay as they are.
local function set(t, k, v)
   k = plain(k)
   if k == nil or k ~= k then bad('key of a dictionary; got None or NaN') end
   t[k] = plain(v)
end

local function sizesOf(list, what)
   if type(list) ~= 'table' then bad('%s; got a %s, need a tuple', what, type(list)) end
   local out = {}
   for i, v in ipairs(list) do
      if type(v) ~= 'number' or v < 0 or v % 1 ~= 0 then bad('%s; got %s, need whole numbers', what, tostring(v)) end
      out[i] = v
   end
   return out
end

local function rebuildTensor(args)
   local storage, offset, size, stride = args[1], args[2], sizesOf(args[3], 'sizes'), sizesOf(args[4], 'strides')
   if not torch.typename(storage) or type(offset) ~= 'number' or #size ~= #stride then
      bad('tensor; got a %s, need storage, offset, sizes and strides', type(storage))
   end
   if #size == 0 then size, stride = {1}, {1} end
   local last, empty = offset, false
   for d = 1, #size do
      last = last + (size[d] - 1) * stride[d]
      empty = empty or size[d] == 0
   end
   if offset < 0 or (not empty and last >= storage:size()) then bad('tensor; got last element %.0f, need fewer than %d', last, storage:size()) end
   local make = torch[torch.typename(storage):gsub('^torch%.', ''):gsub('Storage$', 'Tensor')]
   if empty then return make(torch.LongStorage(size)) end
   return make(storage, offset + 1, torch.LongStorage(size), torch.LongStorage(stride))
end

local functions = {
   ['collections OrderedDict'] = function(args)
      local t = {}
      for _, pair in ipairs(args[1] or {}) do set(t, pair[1], pair[2]) end
      return t
   end,
   ['torch._utils _rebuild_tensor_v2'] = rebuildTensor,
   ['torch._utils _rebuild_tensor'] = rebuildTensor,
   ['torch._utils _rebuild_parameter'] = function(args) return args[1] end,
   ['torch._utils _rebuild_parameter_with_state'] = function(args) return args[1] end,
   ['torch Size'] = function(args) return args[1] or {} end,
   ['torch device'] = function(args) return args[1] end,
   ['_codecs encode'] = function(args) return args[1] end,
   ['builtins set'] = function(args) return args[1] or {} end,
}

local ops = {}
local function op(code, f) ops[code:byte()] = f end

op('\128', function(r) r:int(1) end)
op('\149', function(r) r:take(8) end)
op('(', function(r) r:push(MARK) end)
op('0', function(r) r:pop() end)
op('1', function(r) r:marked() end)
op('2', function(r) r:push(r.stack[r.n]) end)
op('N', function(r) r:push(NONE) end)
op('\136', function(r) r:push(true) end)
op('\137', function(r) r:push(false) end)
op('K', function(r) r:push(r:int(1)) end)
op('M', function(r) r:push(r:int(2)) end)
op('J', function(r) r:push(r:int(4, true)) end)
op('\138', function(r)
   local n = r:int(1)
   if n > 8 then bad('integer of %d bytes; need at most 8', n) end
   r:push(n == 0 and 0 or r:int(n, true))
end)
op('I', function(r)
   local s = r:line()
   if s == '00' or s == '01' then return r:push(s == '01') end
   r:push(tonumber(s) or bad('integer; got %q', s))
end)
op('F', function(r) r:push(tonumber((r:line()))) end)
op('G', function(r)
   local s = r:take(8):reverse()
   local d = require('ffi').new('double[1]')
   require('ffi').copy(d, s, 8)
   r:push(tonumber(d[0]))
end)
op('X', function(r) r:push(r:take(r:int(4))) end)
op('\140', function(r) r:push(r:take(r:int(1))) end)
op('\141', function(r) r:push(r:take(r:int(8))) end)
op('U', function(r) r:push(r:take(r:int(1))) end)
op('T', function(r) r:push(r:take(r:int(4))) end)
op('B', function(r) r:push(r:take(r:int(4))) end)
op('C', function(r) r:push(r:take(r:int(1))) end)
for _, code in ipairs {'}', ']', ')', '\143'} do op(code, function(r) r:push {} end) end
for code, n in pairs {['\133'] = 1, ['\134'] = 2, ['\135'] = 3} do
   op(code, function(r)
      local t = {}
      for i = n, 1, -1 do t[i] = plain(r:pop()) end
      r:push(t)
   end)
end
for _, code in ipairs {'t', 'l'} do
   op(code, function(r)
      local t = r:marked()
      for i = 1, #t do t[i] = plain(t[i]) end
      r:push(t)
   end)
end
op('d', function(r)
   local list, t = r:marked(), {}
   for i = 1, #list, 2 do set(t, list[i], list[i + 1]) end
   r:push(t)
end)
op('a', function(r)
   local v, t = r:pop(), r:top('list')
   t[#t + 1] = plain(v)
end)
for _, code in ipairs {'e', '\144'} do
   op(code, function(r)
      local list, t = r:marked(), r:top('list')
      for i = 1, #list do t[#t + 1] = plain(list[i]) end
   end)
end
op('s', function(r)
   local v, k, t = r:pop(), r:pop(), r:top('dictionary')
   set(t, k, v)
end)
op('u', function(r)
   local list, t = r:marked(), r:top('dictionary')
   for i = 1, #list, 2 do set(t, list[i], list[i + 1]) end
end)
op('q', function(r) r.memo[r:int(1)] = r.stack[r.n] end)
op('r', function(r) r.memo[r:int(4)] = r.stack[r.n] end)
op('\148', function(r)
   r.memo[r.memos] = r.stack[r.n]
   r.memos = r.memos + 1
end)
local function recall(r, k)
   if r.memo[k] == nil then bad('memo %d; got nothing there', k) end
   r:push(r.memo[k])
end
op('h', function(r) recall(r, r:int(1)) end)
op('j', function(r) recall(r, r:int(4)) end)
local function global(r, module, name) r:push {func = functions[module .. ' ' .. name], name = module .. '.' .. name, class = name} end
op('c', function(r) global(r, r:line(), r:line()) end)
op('\147', function(r)
   local name, module = r:pop(), r:pop()
   global(r, tostring(module), tostring(name))
end)
op('R', function(r)
   local args, f = r:pop(), r:pop()
   if type(f) ~= 'table' or not f.class then bad('call of a %s', type(f)) end
   if not f.func then bad('%s; got an object of that class, need tensors, numbers, strings, lists and dictionaries (save a state_dict)', f.name) end
   if type(args) ~= 'table' then bad('arguments of %s; got a %s', f.name, type(args)) end
   local v = f.func(args)
   if v == nil then v = NONE end
   r:push(v)
end)
op('\129', function(r)
   r:pop()
   local f = r:pop()
   bad('%s; got an object of that class, need tensors, numbers, strings, lists and dictionaries (save a state_dict)', type(f) == 'table' and f.name or '?')
end)
op('b', function(r) r:pop() end) -- attributes of a dictionary, such as a state dict's _metadata
op('Q', function(r) r:push(r.persistent(r:pop())) end)

--- Value of a pickle; persistent(id) gives what an id outside of it stands for.
function M.decode(s, persistent)
   local r = setmetatable({s = s, at = 1, n = 0, stack = {}, memo = {}, memos = 0, persistent = persistent}, Reader)
   while true do
      local code = r:take(1)
      if code == '.' then return plain(r:pop()) end
      local f = ops[code:byte()]
      if not f then bad('opcode %d at byte %d is not known', code:byte(), r.at - 1) end
      f(r)
   end
end

-- Archives ------------------------------------------------------------------------------------------------------------------------

-- Loads storages by key, each once, so that tensors that shared one share it again.
local function loader(file, size, list, root)
   local order, seen = list[root .. 'byteorder'], {}
   local big = false
   if order then
      local f, n = zip.open(file, size, order)
      big = f:readBytes(n) == 'big'
   end
   return function(id)
      if type(id) ~= 'table' or id[1] ~= 'storage' or type(id[2]) ~= 'table' then
         bad('reference; got %s, need a storage', tostring(type(id) == 'table' and id[1]))
      end
      local kind, key, count = storages[id[2].class or ''], tostring(id[3]), id[5]
      if not kind then bad('storage of %s; need a type that Torch has', tostring(id[2].name)) end
      local e = list[root .. 'data/' .. key]
      if not e or type(count) ~= 'number' then bad('storage %s; got none in the archive', key) end
      if seen[key] then return seen[key] end
      if count * kind[2] ~= e.size then bad('storage %s; got %.0f bytes, need %.0f', key, e.size, count * kind[2]) end
      local storage = torch[kind[1] .. 'Storage'](count)
      local f = zip.open(file, size, e)
      f[big and 'bigEndianEncoding' or 'littleEndianEncoding'](f)
      if count > 0 then f['read' .. kind[1]](f, storage) end
      f:nativeEndianEncoding()
      seen[key] = storage
      return storage
   end
end

--- Reads a file of torch.save: dictionaries become tables (their order is lost), None is absent, rank-0 tensors have one element, GPU tensors come
-- to the CPU.
function M.read(file, size)
   local list = zip.entries(file, size)
   for _, e in ipairs(list) do
      local root = e.name:match('^(.*)data%.pkl$')
      if root then
         local f, n = zip.open(file, size, e)
         return M.decode(f:readBytes(n), loader(file, size, list, root))
      end
   end
   bad('archive; got no data.pkl, need a file of torch.save')
end

return M
