-- Classes: Torch7's types by name (name -> metatable), factories, parents, typename.
-- C.metatables holds every type, those of the core included.
local C = require 'relume.core'
local torch = C.torch
local types = C.metatables                       -- typename -> metatable
local names = setmetatable({}, {__mode = 'k'})   -- metatable -> typename
local factories, constructors = {}, {}
for name, mt in pairs(types) do names[mt] = name end

local debug_getmetatable, debug_setmetatable = debug.getmetatable, debug.setmetatable
local rawget, rawset, type, setmetatable, getmetatable = rawget, rawset, type, setmetatable, getmetatable

--- Name of an object's type: 'torch.FloatTensor', 'nn.Linear'; nil for plain Lua values.
function torch.typename(obj)
   local mt = debug_getmetatable(obj)
   return mt and names[mt]
end

--- typename, or Lua's type.
function torch.type(obj)
   local mt = debug_getmetatable(obj)
   return mt and names[mt] or type(obj)
end

--- Metatable of a type by name, nil when there is no such type.
function torch.getmetatable(name)
   return types[name]
end

--- Gives a table or userdata the metatable of the named type.
function torch.setmetatable(obj, name)
   local mt = types[name]
   if not mt then error('[setmetatable] unknown type; got ' .. tostring(name) .. ', need a class made by torch.class', 2) end
   if rawget(mt, '__pending') then torch._settle(mt) end
   debug_setmetatable(obj, mt) -- its own result differs between Lua versions
   return obj
end

--- Function that makes an empty object of the type, as loading a file does.
function torch.factory(name)
   return types[name] and factories[name] -- types may load the class first
end

--- The table that is called to construct: torch.getconstructortable('nn.Linear') is nn.Linear.
function torch.getconstructortable(name)
   return constructors[name] or types[name] and constructors[name]
end

-- Operators: Torch7 classes write `__add__`, `__call__`, `__tostring__` ...; Lua looks for `__add`.
local operators = {'add', 'sub', 'mul', 'div', 'mod', 'pow', 'unm', 'concat', 'len', 'lt', 'le'}

local function install_operators(mt)
   for _, op in ipairs(operators) do
      local key = '__' .. op .. '__'
      mt['__' .. op] = function(a, b, ...)
         local m = debug_getmetatable(a)
         local f = m and m[key]
         if not f then
            m = debug_getmetatable(b)
            f = m and m[key]
         end
         if f then return f(a, b, ...) end
         error(('[%s] no such operator; got %s, need a class that defines %s'):format(op, torch.type(a), key), 2)
      end
   end
   mt.__call = function(self, ...) -- apart from the others: m() and m(nil) differ
      local f = self.__call__
      if f then return f(self, ...) end
      error(('[call] no such operator; got %s, need a class that defines __call__'):format(torch.type(self)), 2)
   end
   mt.__tostring = function(self)
      local f = self.__tostring__
      if f then return f(self) end
      return torch.typename(self)
   end
end

local function index_by_function(mt)
   return function(self, key)
      local f = mt.__index__
      if f then
         local value, found = f(self, key)
         if found then return value end
      end
      return mt[key]
   end
end

local function newindex_by_function(mt)
   return function(self, key, value)
      local f = mt.__newindex__
      if f and f(self, key, value) then return end
      rawset(self, key, value)
   end
end

--- Chooses the fast table lookup or the class's own `__index__`, `__newindex__` and `__eq__`; done when the first object is made.
function torch._settle(mt)
   rawset(mt, '__pending', nil)
   if rawget(mt, '__index') == mt and mt.__index__ then rawset(mt, '__index', index_by_function(mt)) end
   if rawget(mt, '__newindex') == nil and mt.__newindex__ then rawset(mt, '__newindex', newindex_by_function(mt)) end
   if rawget(mt, '__eq') == nil and mt.__eq__ then rawset(mt, '__eq', function(a, b) return mt.__eq__(a, b) end) end
end

-- The constructor table: calls construct, reads and writes go to the metatable (static members are methods).
local function constructor_table(mt, constructor)
   local ctor = {}
   setmetatable(ctor, {
      __index = mt, __newindex = mt, __metatable = mt, __typename = mt.__typename,
      __call = function(_, ...) return constructor(...) end,
      __tostring = function() return mt.__typename end})
   return ctor
end

-- 'nn.Linear' -> table nn (made when missing), 'Linear'. A name without dots goes into the globals.
local function resolve(name, module)
   local path, last = name:match('^(.*)%.([^.]+)$')
   if module then return module, last or name end
   local t = _G
   for part in (path or ''):gmatch('[^.]+') do
      if part == 'torch' and t == _G then
         t = torch
      else
         if rawget(t, part) == nil then t[part] = {} end
         t = t[part]
      end
   end
   return t, last or name
end

--- Registers a type: torch.newmetatable(name, parent, constructor, destructor, factory, module) -> metatable.
function torch.newmetatable(name, parent, constructor, _, factory, module)
   local mt = rawget(types, name) -- packages load classes through types' __index: not the one that is being made
   if mt and rawget(mt, '__gc') then error('[class] type of the core; got ' .. name .. ', need another name', 3) end
   if not mt then -- a program that defines a class twice gets the same metatable again
      mt = {__typename = name, __version = 1}
      mt.__index = mt
      install_operators(mt)
   end
   rawset(mt, '__pending', true)
   rawset(mt, '__factory', factory)
   rawset(mt, '__constructor', constructor)
   if parent then
      local inTorch = not types[parent] and parent:match '^torch%.(%w+)$'
      local pmt, old = inTorch and torch[inTorch] and types[parent] or types[parent], getmetatable(mt) -- torch[name] loads the class
      if not pmt then error('[class] unknown parent; got ' .. tostring(parent) .. ', need a class made before', 3) end
      if old and old ~= pmt then error('[class] another parent; got ' .. parent .. ' for ' .. name .. ', need ' .. old.__typename, 3) end
      setmetatable(mt, pmt)
   end
   types[name], names[mt], factories[name] = mt, name, factory
   local holder, key = resolve(name, module)
   if constructor then
      local ctor = constructor_table(mt, constructor)
      constructors[name] = ctor
      rawset(holder, key, ctor)
   end
   return mt
end

--- torch.class('nn.Linear' [, 'nn.Module' [, module]]) or torch.class('a.B', module) -> metatable, parent's metatable.
-- Objects are tables; `__init` is the constructor.
function torch.class(name, parent, module)
   if type(parent) == 'table' then parent, module = nil, parent end
   if type(name) ~= 'string' then error('[class] name; got ' .. type(name) .. ', need string', 2) end
   local mt
   local function factory()
      local self = {}
      if rawget(mt, '__pending') then torch._settle(mt) end
      return setmetatable(self, mt)
   end
   local function constructor(...)
      local self = {}
      if rawget(mt, '__pending') then torch._settle(mt) end
      setmetatable(self, mt)
      local init = mt.__init
      if init then init(self, ...) end
      return self
   end
   mt = torch.newmetatable(name, parent, constructor, nil, factory, module)
   rawset(mt, 'new', constructor)
   return mt, parent and types[parent] or nil
end

--- True when obj is of the type (a name, a pattern, or a constructor table) or inherits from it.
function torch.isTypeOf(obj, spec)
   if type(spec) == 'table' then
      local mt = getmetatable(spec)
      spec = mt and mt.__typename
   end
   if type(spec) ~= 'string' then error('[isTypeOf] type; got ' .. type(spec) .. ', need name, pattern or class', 2) end
   local mt = debug_getmetatable(obj)
   while mt do
      local name = type(mt) == 'table' and rawget(mt, '__typename')
      if name then
         local m = name:match(spec)
         if m and (m ~= spec or m == name) then return true end -- a plain name must match whole
      end
      mt = getmetatable(mt)
   end
   return false
end

--- True for every tensor.
function torch.isTensor(obj)
   if type(obj) ~= 'userdata' then return false end
   local name = torch.typename(obj)
   return name ~= nil and name:find('Tensor$') ~= nil
end

--- True for every storage.
function torch.isStorage(obj)
   if type(obj) ~= 'userdata' then return false end
   local name = torch.typename(obj)
   return name ~= nil and name:find('Storage$') ~= nil
end

--- Names of FFI types: torch.metatype('tds.Hash', ctype) lets torch.typename see objects of ctype.
function torch.metatype(name, ctype, mt)
   local ffi = require 'ffi'
   local cmt = types[name] or torch.newmetatable(name)
   if mt then for k, v in pairs(mt) do cmt[k] = v end end
   torch._ctypes = torch._ctypes or {}
   torch._ctypes[name] = ffi.typeof(ctype)
   return cmt
end

--- Registers a type of the core (userdata): its constructor table and factory.
function torch._core_type(name, constructor)
   local mt = types[name]
   names[mt] = name
   local ctor = constructor_table(mt, constructor)
   constructors[name] = ctor
   factories[name] = constructor
   rawset(mt, '__factory', constructor)
   rawset(mt, 'new', constructor) -- x.new(sizes...): no self
   rawset(torch, name:match('[^.]+$'), ctor)
   return ctor
end

return types
