-- Context of one capture: wraps raw values, collects guards, keeps overlays (closure, arguments -> guards, graph, effects).
-- Nothing of the program is touched while capturing: giving up leaves no trace.

jit.off(true, true) -- each path is evaluated once: traces would not pay, and would push out the program's

local value = require 'relume.jit.value'
local breaks = require 'relume.jit.breaks'
local bytecode = require 'relume.jit.bytecode'
local okC, C = pcall(require, 'relume.core')

local Context = {}
Context.__index = Context

local const, NIL = value.const, value.NIL
local dgetmeta = debug.getmetatable
local CHANGES = 3 -- a string behind a graph break that was seen to change so often is not looked at any more; nor is a number's text made

--- marks: what changed between earlier captures of this closure (see sizes.lua). opts: torch.compile's options.
function Context.new(marks, opts)
   return setmetatable({marks = marks, opts = opts or {}, guards = {}, objects = {}, cells = {}, byfake = {}, inputs = {}, numbers = {}, cellList = {},
      touched = {}, touchedCells = {}, frames = {}, steps = 0, tables = {}, tapeKeys = {}, holes = {}, symbols = {}, keyNumbers = {},
      keyed = {}, views = {}}, Context)
end

-- Breaks and errors ------------------------------------------------------------------------------------------------------------

--- Source line of the innermost frame.
function Context:where()
   local f = self.frames[#self.frames]
   if not f then return self.home or '?' end
   return bytecode.where(f.proto, f.pc - 1)
end

--- at: number of the instruction before which capture can stop instead; rest: all behind it runs eagerly then.
function Context:brk(id, detail, where, at, rest)
   local b = breaks.new(id, detail, where or self:where())
   b.at, b.rest = at, rest
   error(b, 0)
end

--- Raises a run-time error of the evaluated program, with Lua's position in front.
-- exact: the text is LuaJIT's own to the letter, so that pcall can give it as a result.
function Context:raise(message, exact)
   local e = breaks.raised(const(self:where() .. ': ' .. message), message)
   e.exact = exact
   error(e, 0)
end

-- Guards -----------------------------------------------------------------------------------------------------------------------

function Context:guard(g)
   g.where = self:where()
   self.guards[#self.guards + 1] = g
   return g
end

--- The value of a constant is looked at: its guard is written, once.
function Context:need(v)
   if v.src and not v.g then
      local texts = self.marks.texts
      if texts and type(v.v) == 'string' and (texts[v.src.id] or 0) >= CHANGES then self:brk('changing-string', v.src.text) end
      v.g = true
      self:guard {kind = 'eq', src = v.src, value = v.v}
   end
   return v.v
end

function Context:isNil(v)
   if v.k == 'const' and v.v ~= nil then self:present(v) end
   return v.k == 'const' and v.v == nil and (self:need(v) == nil)
end

-- Leaves of a number expression.
local function leaves(e, visit)
   if e.op == 'src' or e.op == 'hole' then return visit(e) end
   if e.a then leaves(e.a, visit) end
   if e.b then leaves(e.b, visit) end
end

local function needLeaf(ctx, e)
   if e.op == 'hole' then return end
   local known = ctx.numtypes or {}
   ctx.numtypes = known
   if not known[e.src.id] then
      known[e.src.id] = true
      ctx:guard {kind = 'type', src = e.src, value = 'number'}
   end
end

--- The number is used as a number: guards its type.
function Context:needNum(v)
   if v.k == 'num' then leaves(v.e, function(e) needLeaf(self, e) end) end
end

--- The number's value is needed now: every loaded number in it gets an equality guard.
function Context:specialise(v)
   if v.k == 'const' then return self:need(v) end
   leaves(v.e, function(e)
      if e.op == 'hole' then self:pin(e) else self:equal(e) end
   end)
   return v.hint
end

--- The number becomes text: as specialise, but the text of one that was seen to change often is made in the real VM.
function Context:textOf(v)
   if v.k == 'num' then
      leaves(v.e, function(e)
         if e.src and (self.marks.values[e.src.id] or 0) >= CHANGES then self:brk('changing-string', 'text of ' .. e.src.text) end
      end)
   end
   return self:specialise(v)
end

--- Guards the value of a loaded number.
function Context:equal(e)
   local known = self.numeq or {}
   self.numeq = known
   if known[e.src.id] then return end
   known[e.src.id] = true
   self:guard {kind = 'eq', src = e.src, value = e.hint, number = true}
end

--- The number's value goes into the graph: integers that change become part of the key, others get an equality guard.
function Context:bake(v)
   if v.k == 'const' or self.folding then return self:specialise(v) end
   leaves(v.e, function(e)
      if e.op == 'hole' then return end
      if self:keyable(e) then self:keyNumber(e) else self:equal(e) end
   end)
   return v.hint
end

--- True when some loaded number in it was seen to change.
function Context:changes(v)
   local yes = false
   leaves(v.e, function(e) yes = yes or e.src and self.marks.dyn[e.src.id] end)
   return yes
end

--- Guards the outcome of a test of number expressions.
function Context:guardTest(op, a, b, outcome)
   self:needNum(a)
   self:needNum(b)
   self:guard {kind = 'test', op = op, a = value.expr(a), b = value.expr(b), value = outcome}
   return outcome
end

--- The table is looked into: guards that it is this table, or (arguments, and places that were seen to change) some table.
function Context:needTable(v)
   if v.g or not v.real then return end
   v.g = true
   if v.src.kind == 'const' then return end
   local src = v.src
   if src.kind == 'arg' or src.kind == 'vararg' or value.within(src, self.marks.struct) then
      v.struct = true
      self:guard {kind = 'type', src = src, value = 'table'}
   else
      self:guard {kind = 'ident', src = src, value = v.real, what = 'table'}
      v.src = value.constant(v.real, src.text)
   end
end

function Context:needFunc(v)
   if v.g or not v.real then return end
   v.g = true
   local src = v.src
   if src.kind == 'const' then return end
   local id = self.marks.proto[src.id] and bytecode.id(v.real)
   if id then
      v.byproto = true
      self:guard {kind = 'proto', src = src, value = id}
   else
      self:guard {kind = 'ident', src = src, value = v.real, what = 'function'}
      v.src = value.constant(v.real, src.text)
   end
end

--- Identity of any object is looked at.
function Context:needIdentity(v)
   if not v.real or v.src and v.src.kind == 'const' then return end
   if v.k == 'table' then self:needTable(v)
   elseif v.k == 'func' then self:needFunc(v)
   elseif v.src and not v.ident then
      v.ident = true
      self:guard {kind = 'ident', src = v.src, value = v.real, what = v.k}
   end
end

--- The value is there (not nil): a table's length and keys, or a metatable's say, depend on it.
function Context:present(v)
   if v.k == 'num' then return self:needNum(v) end
   if not v.src or v.g or v.pres or v.src.kind == 'const' then return end
   v.pres = true
   if v.k == 'const' and v.v == nil then return self:need(v) end
   self:guard {kind = 'present', src = v.src}
end

--- The type is looked at (truth, type()).
function Context:needType(v)
   local k = v.k
   if k == 'const' then self:need(v)
   elseif k == 'num' then self:needNum(v)
   elseif k == 'table' then self:needTable(v)
   elseif k == 'func' then self:needFunc(v)
   elseif (k == 'tensor' or k == 'udata') and v.src and not v.typed then
      v.typed = true
      self:guard {kind = 'metatable', src = v.src, value = dgetmeta(v.real)}
   end
end

function Context:truth(v)
   if v.k == 'const' then return self:need(v) and true or false end
   self:needType(v)
   return true
end

--- The contents of a storage are looked at.
function Context:contents(v)
   if v.made or v.contents then return end
   if v.real:size() > 64 then self:brk('needs-values', 'a storage') end
   v.contents = v.real:totable()
   self:needType(v)
   self:guard {kind = 'contents', src = v.src, value = v.contents}
end

--- A module was loaded: fields that were absent may be there now.
function Context:reload()
   for _, t in ipairs(self.tables) do
      for key, v in pairs(t.f) do
         if not t.d[key] and v.k == 'const' and v.v == nil and rawget(t.real, key) ~= nil then t.f[key] = nil end
      end
   end
end

-- Wrapping ---------------------------------------------------------------------------------------------------------------------

local function isTensor(x) return okC and C.torch.isTensor(x) end

local function newObject(raw, src)
   local t = type(raw)
   if t == 'table' then return {k = 'table', real = raw, src = src, f = {}, d = {}, order = {}, orig = {}}
   elseif t == 'function' then return {k = 'func', real = raw, src = src}
   elseif isTensor(raw) then return {k = 'tensor', real = raw, src = src} end
   return {k = 'udata', real = raw, src = src}
end

--- The value of a raw Lua value that src loads. The same object is the same value wherever it is met.
function Context:wrap(raw, src)
   local t = type(raw)
   if t == 'number' then return {k = 'num', e = {op = 'src', src = src, hint = raw}, hint = raw, src = src} end
   if t ~= 'table' and t ~= 'function' and t ~= 'userdata' then return {k = 'const', v = raw, src = src} end
   local v = self.objects[raw]
   if not v then
      v = newObject(raw, src)
      self.objects[raw] = v
      if t == 'table' then self.tables[#self.tables + 1] = v end
   elseif v.src and v.src.id ~= src.id and not (self.seen and self.seen[src.id]) then
      self.seen = self.seen or {}
      self.seen[src.id] = true
      if v.src.kind == 'const' then self:guard {kind = 'ident', src = src, value = raw, what = t}
      else self:guard {kind = 'same', src = src, other = v.src} end
   end
   return v
end

--- The value of an object that is always this one (a globals table, a library function, a metatable).
function Context:constant(raw, text)
   local t = type(raw)
   if t ~= 'table' and t ~= 'function' and t ~= 'userdata' then return const(raw) end
   local v = self.objects[raw]
   if not v then
      v = newObject(raw, value.constant(raw, text))
      self.objects[raw] = v
      if t == 'table' then self.tables[#self.tables + 1] = v end
   end
   return v
end

-- Upvalues ---------------------------------------------------------------------------------------------------------------------

--- Cell of upvalue i (from 1) of a function value.
function Context:cell(fn, i)
   if fn.cells then return fn.cells[i] end
   local id = debug.upvalueid(fn.real, i)
   local c = self.cells[id]
   local name, raw
   if not c or fn.byproto or c.src.kind == 'fupv' then
      name, raw = debug.getupvalue(fn.real, i)
      local src = fn.byproto and value.fupvalue(fn.src, i, name) or value.upvalue(fn.real, i, name)
      if not c then
         c = {src = src, raw = raw}
         self.cells[id] = c
         self.cellList[#self.cellList + 1] = c
      elseif c.src.id ~= src.id and (src.kind == 'fupv' or c.src.f ~= fn.real) then
         c.same = c.same or {}
         if not c.same[src.id] then
            c.same[src.id] = true
            self:guard {kind = 'samecell', src = src, other = c.src}
         end
      end
   end
   return c
end

function Context:cellGet(c)
   if c.slots then return c.slots[c.slot] end
   if not c.v then
      c.v = self:wrap(c.raw, c.src)
      c.orig = c.v
   end
   return c.v
end

function Context:cellSet(c, v)
   if c.slots then c.slots[c.slot] = v return end
   if c.src and not c.dirty then
      c.dirty = true
      self.touchedCells[#self.touchedCells + 1] = c
   end
   c.v = v
end

-- Tables -----------------------------------------------------------------------------------------------------------------------

-- Side tables of gradient records: capture sees none of what eager left there.
local function isTape(t)
   local mt = t.real and dgetmeta(t.real)
   return mt and rawget(mt, '__tape')
end
function Context:isTape(t) return isTape(t) end

-- What an earlier call left in a tape for a module: a compiled forward's entry is read; of others captured code runs the module again, which
-- those that draw or gather statistics must not do.
local function earlier(ctx, t, key)
   local raw, module = rawget(t.real, key), ctx.tapeKeys[key]
   if type(key) ~= 'table' then return NIL end
   local src = module and value.at(t.src, module) or value.field(t.src, key)
   local once = key.lastForward and true or false
   local state = value.recordState(raw, once)
   ctx:guard {kind = 'record', src = src, value = state, once = once}
   if state == 'real' then ctx:brk('history', 'the forward of ' .. (type(key) == 'table' and C.torch.typename(key) or 'a module')) end
   if state == 'none' then return NIL end
   return ctx:readRecord(raw, key, src, module)
end

--- The raw key under which a value is kept in t: constants as they are, objects by identity. A module that may be another one at the next
-- call (an argument) can be the key of a tape, from which nothing is read: there its record is dropped under the name it then has.
function Context:key(v, t)
   local k = v.k
   if k == 'const' then return self:need(v) end
   if k == 'num' then return self:specialise(v) end
   if k == 'gnum' then self:brk('data-dependent', 'a table key') end
   if not v.real then
      self.valueKeys = self.valueKeys or {}
      self.valueKeys[v] = true
      return v
   end
   if v.src and v.src.kind ~= 'const' then
      self:needIdentity(v)
      if v.struct and t and isTape(t) then
         self.tapeKeys[v.real] = v.src
      elseif v.struct or v.byproto then
         self:brk('table-key', v.src.text)
      end
   end
   return v.real
end

function Context:rawget(t, key)
   if t.blind and type(key) == 'number' then self:settle(t) end
   local v = t.f[key]
   if v then
      if t.unread then t.unread[key] = nil end
      if t.fresh then t.fresh[key] = nil end
      return v
   end
   if not t.real then return NIL end
   if isTape(t) then return earlier(self, t, key) end
   self:needTable(t)
   v = self:wrap(rawget(t.real, key), value.field(t.src, key))
   t.f[key] = v
   t.orig[key] = v
   return v
end

-- Random ops in the graph so far.
local function randomOps(ctx)
   local n = 0
   for name, count in pairs(ctx.graph and ctx.graph:ops() or {}) do
      local info = C.opInfo(name)
      if info and math.floor(info.flags / 16) % 2 == 1 then n = n + count end
   end
   return n
end

local tapeUsers = setmetatable({}, {__mode = 'k'}) -- function -> whether a tape's side table is among its upvalues
local function usesTape(f)
   if tapeUsers[f] == nil then
      tapeUsers[f] = false
      for i = 1, 60 do
         local name, t = debug.getupvalue(f, i)
         if not name then break end
         if type(t) == 'table' and isTape {real = t} then tapeUsers[f] = true end
      end
   end
   return tapeUsers[f]
end

--- A frame begins: functions that write to a tape remember how many random ops there were.
function Context:enter(frame)
   local f = frame.fn.real
   if f and usesTape(f) then frame.random = randomOps(self) end
end

--- A record is put on a tape. When random ops made it, its backward must be inside as well (see checkRecords in emit.lua).
function Context:record(t, key)
   t.fresh = t.fresh or {}
   t.fresh[key] = true
   local random = self.frames[#self.frames].random
   if not random or randomOps(self) > random then
      t.unread = t.unread or {}
      t.unread[key] = self:where()
   elseif t.unread then
      t.unread[key] = nil
   end
end

function Context:rawset(t, key, v)
   if key == nil then self:raise 'table index is nil' end
   if key ~= key then self:raise 'table index is NaN' end
   if t.blind and type(key) == 'number' then self:settle(t) end
   self:present(v)
   if t.real then
      if t.src.kind ~= 'const' then self:needTable(t) end
      if not t.d[key] then
         if #t.order == 0 then self.touched[#self.touched + 1] = t end
         t.d[key] = true
         t.order[#t.order + 1] = key
      end
      if isTape(t) and not (v.k == 'const' and v.v == nil) then self:record(t, key) end
   else
      if not t.d[key] then
         t.d[key] = true
         t.order[#t.order + 1] = key
      end
      if v.k == 'const' and v.v == nil then self:need(v) t.shadow[key] = nil else t.shadow[key] = true end
   end
   t.f[key] = v
end

--- Metatable of a table, or nil.
function Context:metatable(t)
   if t.meta == nil then
      self:needTable(t)
      local mt = dgetmeta(t.real)
      self:guard {kind = 'metatable', src = t.src, value = mt}
      t.meta = mt and self:constant(mt, 'metatable of ' .. t.src.text) or false
   end
   return t.meta or nil
end

function Context:setmetatable(t, mt)
   if t.real and not t.metaDirty then
      self:metatable(t)
      t.metaDirty = true
      self.metaTouched = self.metaTouched or {}
      table.insert(self.metaTouched, t)
   end
   t.meta = mt or false
end

local function present(ctx, t, key)
   local v = ctx:rawget(t, key)
   return not ctx:isNil(v)
end

--- Number of elements as # sees them, written ones included.
function Context:rawlen(t)
   if not t.real then return #t.shadow end
   if t.blind then self:settle(t) end
   if not t.lenGuard then
      t.lenGuard = true
      self:needTable(t)
      t.len0 = #t.real
      self:guard {kind = 'len', src = t.src, value = t.len0}
   end
   local n = t.len0
   if #t.order == 0 then return n end
   while n > 0 and t.d[n] and not present(self, t, n) do n = n - 1 end
   while t.d[n + 1] and present(self, t, n + 1) do n = n + 1 end
   return n
end

--- Keys in the order of next: those of the real table (guarded), then written ones.
function Context:keys(t)
   local list = {}
   if not t.real then
      for key in next, t.shadow do list[#list + 1] = key end
      return list
   end
   if isTape(t) then return list end
   self:needTable(t)
   if t.blind then self:settle(t) end
   if not t.keyGuard then
      t.keyGuard = {}
      for key in next, t.real do t.keyGuard[#t.keyGuard + 1] = key end
      self:guard {kind = 'keys', src = t.src, value = t.keyGuard}
   end
   for _, key in ipairs(t.keyGuard) do
      if not t.d[key] or present(self, t, key) then list[#list + 1] = key end
   end
   for _, key in ipairs(t.order) do
      if rawget(t.real, key) == nil and present(self, t, key) then list[#list + 1] = key end
   end
   return list
end

--- Value of a raw key from keys().
function Context:keyValue(key)
   local t = type(key)
   if t == 'table' and self.valueKeys and self.valueKeys[key] then return key end
   if t == 'table' or t == 'function' or t == 'userdata' then return self:constant(key) end
   return const(key)
end

--- The key after key, and its value; NIL at the end.
function Context:next(t, key)
   if t.blind then self:settle(t) end
   local it = t.iter
   if key == nil or not it or #it.order ~= #t.order then
      local old = it
      it = {keys = self:keys(t), at = {}, order = {unpack(t.order)}}
      for i, k in ipairs(it.keys) do it.at[k] = i end
      if key ~= nil and old and not it.at[key] then it.keys, it.at = old.keys, old.at end
      t.iter = it
   end
   local i = 0
   if key ~= nil then
      i = it.at[key]
      if not i then self:raise "invalid key to 'next'" end
   end
   while true do
      i = i + 1
      local k = it.keys[i]
      if k == nil then return NIL, NIL end
      local v = self:rawget(t, k)
      if not (v.k == 'const' and v.v == nil) then return self:keyValue(k), v end
   end
end

return Context
