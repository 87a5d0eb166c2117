-- Guards: what each kind checks (guard -> Lua condition that is true when it fails), how it reads to people, and what to do about one that
-- keeps failing.

local M = {conditions = {}}
local fmt = string.format
local conditions = M.conditions

-- Conditions -------------------------------------------------------------------------------------------------------------------
-- self: the emitter; g: the guard; x: the text of the value that it looks at.

function conditions.eq(self, g, x)
   if g.value ~= g.value then return fmt('%s == %s', x, x) end
   return fmt('%s ~= %s', x, self:literal(g.value))
end
function conditions.type(_, g, x) return fmt('type(%s) ~= %q', x, g.value) end
function conditions.ident(self, g, x)
   local mt = debug.getmetatable(g.value)
   if g.what == 'function' or g.what == 'table' and not (mt and rawget(mt, '__eq')) then return fmt('%s ~= %s', x, self:k(g.value)) end
   return fmt('not rawequal(%s, %s)', x, self:k(g.value))
end
function conditions.proto(self, g, x) return fmt('protoOf(%s) ~= %s', x, self:k(g.value)) end
function conditions.metatable(self, g, x)
   local mt = g.value
   if mt and rawget(mt, '__metatable') ~= nil then return fmt('not rawequal(dgetmetatable(%s), %s)', x, self:k(mt)) end
   return fmt('not rawequal(getmetatable(%s), %s)', x, mt and self:k(mt) or 'nil')
end
function conditions.same(self, g, x) return fmt('not rawequal(%s, %s)', x, self:load(g.other)) end
function conditions.distinct(self, g, x) return fmt('rawequal(%s, %s)', x, self:load(g.other)) end
local function cellOf(self, src)
   if src.kind == 'upv' then return fmt('upvalueid(%s, %d)', self:k(src.f), src.key) end
   return fmt('upvalueid(%s, %d)', self:load(src.parent), src.key)
end
function conditions.samecell(self, g) return fmt('%s ~= %s', cellOf(self, g.src), cellOf(self, g.other)) end
function conditions.distinctcell(self, g) return fmt('%s == %s', cellOf(self, g.src), cellOf(self, g.other)) end
function conditions.len(_, g, x) return fmt('#%s ~= %d', x, g.value) end
function conditions.keys(self, g, x) return fmt('not sameKeys(%s, %s)', x, self:klist(g.value)) end
function conditions.contents(self, g, x) return fmt('not sameContents(%s, %s)', x, self:klist(g.value)) end
function conditions.present(_, _, x) return fmt('%s == nil', x) end
function conditions.nograd(_, _, x) return fmt('grad(%s) ~= nil', x) end
function conditions.env(self, g) return fmt('getfenv(%s) ~= %s', self:k(g.f), self:k(g.value)) end
function conditions.nargs(_, g) return fmt("select('#', ...) ~= %d", g.value) end
function conditions.record(_, g, x) return fmt('recordState(%s, %s) ~= %q', x, tostring(g.once), g.value) end
function conditions.gradmode(_, g) return fmt('gradEnabled() ~= %s', tostring(g.value)) end

local infix = {add = '+', sub = '-', mul = '*', div = '/', mod = '%', pow = '^'}
local tests = {eq = '==', lt = '<', le = '<='}
function conditions.test(self, g)
   return fmt('(%s %s %s) ~= %s', self:expr(g.a), tests[g.op], self:expr(g.b), tostring(g.value))
end

-- A plan's number has this value; it holds for every plan of the entry, and is part of its text (see sizes.lua).
function conditions.pin(_, g) return fmt('H[%d] ~= %.17g', g.hole, g.value) end

--- True for guards behind which the values that later guards look at can still be read when they fail.
function M.goesOn(g)
   return g.kind == 'eq' and (type(g.value) == 'number' or g.value == nil) or g.kind == 'test' or g.kind == 'len'
end

-- For people -------------------------------------------------------------------------------------------------------------------

local function quoted(x) return type(x) == 'string' and fmt('%q', x) or tostring(x) end

-- Number expression as text.
local function number(e)
   if e.op == 'src' then return e.src.text end
   if e.op == 'k' then return fmt('%.14g', e.v) end
   if e.op == 'hole' then return e.text or fmt('<%s>', e.hint) end
   if e.op == 'unm' then return '-' .. number(e.a) end
   if e.op == 'call' then return fmt('%s(%s%s)', e.name, number(e.a), e.b and ', ' .. number(e.b) or '') end
   return fmt('(%s %s %s)', number(e.a), infix[e.op], number(e.b))
end

local describe = {}
function describe.eq(g, name) return fmt('%s == %s', name, quoted(g.value)) end
function describe.type(g, name) return fmt('type(%s) == %q', name, g.value) end
function describe.ident(g, name) return fmt('%s is the same %s', name, g.what) end
function describe.proto(_, name) return fmt('%s is a closure of the same function', name) end
function describe.metatable(_, name) return fmt('metatable of %s', name) end
function describe.same(g, name) return fmt('%s and %s are one object', name, g.other.text) end
function describe.distinct(g, name) return fmt('%s and %s are two objects', name, g.other.text) end
function describe.samecell(g, name) return fmt('%s and %s are one variable', name, g.other.text) end
function describe.distinctcell(g, name) return fmt('%s and %s are two variables', name, g.other.text) end
function describe.len(g, name) return fmt('#%s == %d', name, g.value) end
function describe.env() return 'the environment of a function' end
function describe.nargs(g) return fmt('number of variable arguments == %d', g.value) end
function describe.present(_, name) return name .. ' ~= nil' end
function describe.nograd(_, name) return name .. ' has no gradient yet' end
function describe.keys(_, name) return fmt('keys of %s', name) end
function describe.contents(_, name) return fmt('elements of %s', name) end
function describe.test(g) return fmt('%s %s %s is %s', number(g.a), tests[g.op], number(g.b), tostring(g.value)) end
function describe.pin(g) return fmt('%s == %s', g.text or 'result of an op', tostring(g.value)) end
function describe.gradmode(g) return fmt('gradients are %s', g.value and 'on' or 'off') end
function describe.tensors() return 'types, sizes, strides or storages of the tensors' end

--- What a guard checks.
function M.describe(g)
   local f = describe[g.kind]
   local name = g.src and g.src.text or ''
   return f and f(g, name) or fmt('%s of %s', g.kind, name)
end

local TABLES = 'pass the object as an argument or keep it in the same place: its fields are then compared, not its identity'
local advice = {
   ident = TABLES, same = TABLES, distinct = TABLES, metatable = 'give the object one class', type = 'call it with one type of value at this place',
   proto = 'make the function once, outside of what changes', len = 'keep the length of the table', keys = 'keep the keys of the table',
   nargs = 'call it with one number of arguments', present = 'keep the field set from the first call on',
   nograd = 'call backward once before, or zero the gradient instead of dropping it',
   contents = 'keep the sizes', gradmode = 'call it always with gradients on, or always without', test = 'make the comparison outside of the compiled function',
   pin = 'the bound of a loop, a string or a table key needs this size itself: write the loop with tensor ops',
   tensors = 'call it with tensors of the same types, sizes and strides (pad the last batch, or drop it)',
}

--- What to do when a guard keeps failing.
function M.advice(g)
   if g.kind == 'eq' then
      if type(g.value) == 'number' then
         return 'an op or an index needs this number itself: keep it out of the compiled function, or compile a function per value'
      end
      return 'compile one function per value, or read it outside of the compiled function'
   end
   return advice[g.kind] or 'keep it the same between calls'
end

-- Differences ------------------------------------------------------------------------------------------------------------------

local function show(x)
   local t = type(x)
   if t == 'string' then return fmt('%q', #x > 40 and x:sub(1, 37) .. '...' or x) end
   if t == 'nil' or t == 'boolean' or t == 'number' then return tostring(x) end
   local mt = debug.getmetatable(x)
   local name = mt and rawget(mt, '__typename')
   return fmt('%s %p', type(name) == 'string' and name or t, x)
end

local function keysOf(t)
   local list = {}
   for k in next, t do list[#list + 1] = show(k) end
   return '{' .. table.concat(list, ', ') .. '}'
end

local function sizesText(list) return '(' .. table.concat(list, ', ') .. ')' end

local function factsText(f)
   local text = fmt('%s %s', f.type, f.sizes and sizesText(f.sizes) or '')
   if f.requiresGrad then text = text .. ' requiring gradients' end
   return text
end

-- The first fact that differs, of both.
local function tensorPair(was, now)
   local a, b = factsText(was), factsText(now)
   if a ~= b then return a, b end
   a, b = 'strides ' .. sizesText(was.strides or {}), 'strides ' .. sizesText(now.strides)
   if was.strides and a ~= b then return a, b end
   if was.offset and was.offset ~= now.offset then return 'offset ' .. was.offset, 'offset ' .. now.offset end
   if was.storageSize and was.storageSize ~= now.storageSize then
      return fmt('a storage of %d', was.storageSize), fmt('a storage of %d', now.storageSize)
   end
end

--- What the check of all tensors met: name, old value, new value. rows: facts as captured, with names; tensors: those of now; facts(t): of one
-- of these, nil when it is no tensor.
function M.tensorDifference(rows, names, tensors, facts)
   for i, was in ipairs(rows) do
      local t = tensors[i]
      local now = facts(t)
      if not now then return names[i], factsText(was), show(t) end
      local a, b = tensorPair(was, now)
      if a then return names[i], a, b end
   end
   return 'the tensors', 'which of them share a storage, gradient mode and default type as captured', 'others'
end

--- Old and new value of a failed guard as text. x: the value that it looked at.
function M.difference(g, x)
   local k = g.kind
   if k == 'type' then return g.value, type(x) end
   if k == 'len' then return tostring(g.value), type(x) == 'table' and tostring(#x) or show(x) end
   if k == 'keys' then return '{' .. table.concat(M.texts(g.value), ', ') .. '}', type(x) == 'table' and keysOf(x) or show(x) end
   if k == 'metatable' then return show(g.value), show(debug.getmetatable(x)) end
   if k == 'test' or k == 'gradmode' then return tostring(g.value), tostring(not g.value) end
   if k == 'present' then return 'a value', 'nil' end
   if k == 'nograd' then return 'none', 'a gradient' end
   if k == 'same' or k == 'distinct' then return k == 'same' and 'one' or 'two', k == 'same' and 'two' or 'one' end
   if k == 'proto' then return 'one function', show(x) end
   if k == 'contents' then return sizesText(g.value), type(x) == 'userdata' and x.totable and sizesText(x:totable()) or show(x) end
   return show(g.value), show(x)
end

--- Values as texts.
function M.texts(list)
   local out = {}
   for i, v in ipairs(list) do out[i] = show(v) end
   return out
end

return M
