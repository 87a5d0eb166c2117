-- Emitter: one Lua function per captured path, which checks the guards, runs the plan, and replays the effects
-- (context of a finished capture -> source text and constants).
--
--   1. Guards in the order in which the program read things, so that a load never meets a wrong type.
--   2. All tensors are checked by one C call.
--   3. Loads, numbers and results are locals; past 150 of them they live in a table that is kept between calls.
--   4. Upvalues are joined to those of the program's closures, so they are read and written as such.
--   5. Where sizes are free, the check of the tensors gives the number of the plan; P and Hs hold the plans and their holes.

jit.off(true, true) -- each path is evaluated once: traces would not pay, and would push out the program's

local value = require 'relume.jit.value'
local guard = require 'relume.jit.guard'
local sizes = require 'relume.jit.sizes'
local fail = require 'relume.jit.fail'
local inner = require 'relume.jit.inner'
local okC, C = pcall(require, 'relume.core')

local Emit = {}
Emit.__index = Emit
local fmt, concat = string.format, table.concat
local MAXLOCALS, MAXUP, MAXARGS = 150, 34, 100
local guards = guard.conditions

local M = {describe = guard.describe, Emit = Emit}

local function new(ctx, params, vararg)
   local args = {}
   if ctx.generic then args[1] = 'a0' end
   for i = 1, params do args[#args + 1] = 'a' .. i end
   if vararg then args[#args + 1] = '...' end
   return setmetatable({ctx = ctx, args = concat(args, ', '), head = {}, body = {}, K = {}, kindex = {}, loads = {}, nlocal = 0, ups = {},
      upnames = {}, klists = {}, late = {}, noted = {}, exprs = {}, built = {}, items = {}, graded = {}, guardInfo = {}}, Emit)
end

-- Literals and constants ---------------------------------------------------------------------------------------------------------

local function numeral(x)
   if x ~= x then return '(0/0)' elseif x == math.huge then return '(1/0)' elseif x == -math.huge then return '(-1/0)' end
   if x == 0 and 1 / x < 0 then return '(-0)' end
   return x < 0 and fmt('(%.17g)', x) or fmt('%.17g', x)
end

--- Index of a constant object in K, as text.
function Emit:k(x)
   local i = self.kindex[x]
   if not i then
      i = #self.K + 1
      self.K[i], self.kindex[x] = x, i
   end
   return fmt('K[%d]', i)
end

-- As k, of a list that this capture made: another capture's is the same when its elements are.
function Emit:klist(x)
   local name = self:k(x)
   self.klists[self.kindex[x]] = true
   return name
end

function Emit:literal(x)
   local t = type(x)
   if t == 'nil' or t == 'boolean' then return tostring(x) end
   if t == 'number' then return numeral(x) end
   if t == 'string' and #x < 100 then return fmt('%q', x):gsub('\\\n', '\\n'):gsub('\r', '\\r'):gsub('%z', '\\0') .. '' end
   return self:k(x)
end

--- A new local that holds an expression, written to a list of lines.
function Emit:keep(lines, text)
   self.nlocal = self.nlocal + 1
   if self.nlocal <= MAXLOCALS then
      lines[#lines + 1] = fmt('local x%d = %s', self.nlocal, text)
      return 'x' .. self.nlocal
   end
   self.spill = true
   lines[#lines + 1] = fmt('V[%d] = %s', self.nlocal, text)
   return fmt('V[%d]', self.nlocal)
end

-- Loads ------------------------------------------------------------------------------------------------------------------------

local load = {}

function load.arg(_, src) return 'a' .. src.key end
function load.vararg(self, src) return self:keep(self.head, fmt('(select(%d, ...))', src.key)) end
function load.const(self, src) return self:k(src.value) end
function load.field(self, src)
   return self:keep(self.head, fmt('rawget(%s, %s)', self:load(src.parent), self:literal(src.key)))
end
function load.len(self, src) return self:keep(self.head, fmt('#%s', self:load(src.parent))) end
function load.at(self, src)
   return self:keep(self.head, fmt('rawget(%s, %s)', self:load(src.parent), self:load(src.index)))
end
function load.opened(self, src)
   local module = src.module.kind and self:load(src.module) or self:k(src.module)
   return self:keep(self.head, fmt('openRecord(%s, %s)', self:load(src.parent), module))
end
function load.grad(self, src) return self:keep(self.head, fmt('grad(%s)', self:load(src.parent))) end
function load.fupv(self, src) return self:keep(self.head, fmt('upvalueOf(%s, %d)', self:load(src.parent), src.key)) end
function load.upv(self, src)
   local name = self:up(src)
   return self:keep(self.head, name or fmt('upvalueOf(%s, %d)', self:k(src.f), src.key))
end

function load.view(self, src)
   local list = {self:k(src.f), self:load(src.parent)}
   for _, e in ipairs(src.exprs) do list[#list + 1] = self:expr(e) end
   return self:keep(self.head, fmt('viewAt(%s)', concat(list, ', ')))
end

--- Name of the generated function's upvalue that is joined to a source's, nil when there are too many.
function Emit:up(src)
   local name = self.upnames[src.id]
   if not name and #self.ups < MAXUP then
      name = 'u' .. #self.ups + 1
      self.upnames[src.id] = name
      self.ups[#self.ups + 1] = {name = name, f = src.f, key = src.key}
   end
   return name
end

--- Expression of a source's value, loaded once.
function Emit:load(src)
   local x = self.loads[src.id]
   if not x then
      x = load[src.kind](self, src)
      self.loads[src.id] = x
   end
   return x
end

-- Number expressions -------------------------------------------------------------------------------------------------------------

local infix = {add = '+', sub = '-', mul = '*', div = '/', mod = '%', pow = '^'}

--- Text of a number expression; shared parts become locals of the head.
function Emit:expr(e)
   if e.op == 'src' then return self:load(e.src) end
   if e.op == 'k' then return numeral(e.v) end
   if e.op == 'hole' then return fmt('H[%d]', e.i) end
   local x = self.exprs[e]
   if x then return x end
   local a, b = self:expr(e.a), e.b and self:expr(e.b)
   local text
   if e.op == 'unm' then text = '-' .. a
   elseif e.op == 'call' then text = fmt('%s(%s%s)', self:k(e.fn), a, b and ', ' .. b or '')
   else text = fmt('%s %s %s', a, infix[e.op], b) end
   x = self:keep(self.head, text)
   self.exprs[e] = x
   return x
end

-- Guards -----------------------------------------------------------------------------------------------------------------------

--- Writes one guard. x: text of the value that it looks at, for those who ask why it failed.
function Emit:check(g, condition, x)
   local info, head = self.guardInfo, self.head
   info[#info + 1] = g
   local i = #info
   if self.mode == 'diagnose' then
      head[#head + 1] = fmt('if %s then F[#F + 1] = %d F.x[%d] = %s %s end', condition, i, i, x or 'nil', guard.goesOn(g) and '' or 'return')
   elseif self.mode == 'measure' then
      head[#head + 1] = fmt('if %s then return end', condition)
      self.groups = self.groups or {}
      self.groups[i] = #head
   elseif self.inChunk then
      head[#head + 1] = fmt('if %s then return %d end', condition, i)
   else
      head[#head + 1] = fmt('if %s then return miss(%d%s%s) end', condition, i, self.args ~= '' and ', ' or '', self.args)
   end
end

--- Writes the guards; partial ones go into the one call that checks tensors.
function Emit:guards()
   local full, partial, graded, strong = {}, {}, {}, {}
   for _, v in ipairs(self.ctx.inputs) do
      full[v.src.id] = true
      if v.src.kind == 'grad' then graded[v.src.parent.id] = true end
   end
   for _, g in ipairs(self.ctx.guards) do
      if g.kind == 'partial' then partial[g.src.id] = true end
      if g.kind == 'type' or g.kind == 'eq' or g.kind == 'ident' or g.kind == 'proto' or g.kind == 'metatable' and g.value then strong[g.src.id] = true end
      if g.kind == 'nograd' then graded[g.src.id] = true end
   end
   local list = {}
   for _, g in ipairs(self.ctx.guards) do
      if g.kind == 'partial' then
         self.partial = self.partial or {}
         if not full[g.src.id] then table.insert(self.partial, g) end
      elseif g.kind == 'metatable' and g.src and (full[g.src.id] or partial[g.src.id]) and not graded[g.src.id] then -- luacheck: ignore
         -- the check of all tensors covers it
      elseif g.kind == 'present' and (strong[g.src.id] or full[g.src.id] or partial[g.src.id]) then -- luacheck: ignore
         -- another guard of the same value says more
      elseif g.kind == 'pin' or g.kind == 'test' and (sizes.hasHole(g.a) or sizes.hasHole(g.b)) then
         self.late[#self.late + 1] = g
      else
         list[#list + 1] = g
      end
   end
   self:inChunks(#list, function(i)
      local g = list[i]
      local x = g.src and g.kind ~= 'samecell' and self:load(g.src)
      self:check(g, guards[g.kind](self, g, x), x)
   end)
end

local function aliasPairs(inputs)
   local pairsOf, first = {}, {}
   for i, v in ipairs(inputs) do
      local s = v.facts.storage
      if s and tostring(s) ~= 'userdata: NULL' then
         if first[s] then pairsOf[#pairsOf + 1] = {first[s], i} else first[s] = i end
      end
   end
   return pairsOf
end

-- What the check of all tensors holds, as text: entries whose texts are the same are one.
local function rowText(f)
   local free = {}
   for i, d in ipairs(f.free or {}) do free[i] = fmt('%d:%d-%d', d[1], d[2], d[3]) end
   if not f.sizes then return fmt('%s %s', f.type, tostring(f.requiresGrad)) end
   local s = {}
   for d = 1, #f.sizes do s[d] = f.sizes[d] end
   for _, d in ipairs(f.free or {}) do s[d[1]] = '?' end
   local rest = not f.free and fmt(' %s+%d/%d', concat(f.strides, ','), f.offset, f.storageSize) or ''
   if f.window then rest = ' window' end
   return fmt('%s %s%s %s%s %s', f.type, tostring(f.requiresGrad), f.history and ' made' or '', concat(s, 'x'), rest, concat(free, ','))
end

-- Behind the check: the plan and its holes.
function Emit:choosePlan(rows, alias)
   local lines = self.head
   if self.mode then
      lines[#lines + 1] = 'local H = Hs[0]'
      return
   end
   self.keyed = true
   lines[#lines + 1] = fmt('if p__ == 0 then return miss(0%s%s) end', self.args ~= '' and ', ' or '', self.args)
   lines[#lines + 1] = 'local plan, H = P[p__], Hs[p__]'
   for _, row in ipairs(rows) do lines[#lines + 1] = '-- ' .. rowText(row) end
   for _, pair in ipairs(alias) do lines[#lines + 1] = fmt('-- %d and %d share a storage', pair[1], pair[2]) end
end

local function isLoaded(e) return e.op == 'src' or e.a and isLoaded(e.a) or e.b and isLoaded(e.b) or false end

-- Tests of holes: with a loaded number they are checked, else they hold for each plan of the entry and are noted in its text.
function Emit:lateGuards()
   for _, g in ipairs(self.late) do
      if g.kind == 'test' and (isLoaded(g.a) or isLoaded(g.b)) then self:check(g, guards.test(self, g))
      else
         if not sizes.isRank(g) then self.noted[#self.noted + 1] = g end
         if not self.mode then
            local text = guards[g.kind](self, g) -- may add lines of its own
            self.head[#self.head + 1] = '-- ' .. text
         end
      end
   end
end

--- The check of all tensors; leaves the list of input expressions.
function Emit:tensors()
   local rows, names, sources, ctx = {}, {}, {}, self.ctx
   for i, v in ipairs(ctx.inputs) do rows[i], sources[i] = v.facts, v.src end
   for _, g in ipairs(self.partial or {}) do rows[#rows + 1], sources[#sources + 1] = g.facts, g.src end
   for _, e in ipairs(ctx.keyNumbers) do sources[#sources + 1] = e.src end
   local many = self:isMany(#sources) and self:spread('Q', #sources, function(i) return self:load(sources[i]) end)
   for i, src in ipairs(sources) do
      names[i] = many and fmt('Q[%d]', i) or self:load(src)
      if many and not ctx.exit then self.loads[src.id] = names[i] end -- no code of the program runs before they are used
   end
   self.inputs, self.names = {unpack(names, 1, #ctx.inputs)}, names
   if #names == 0 and not (ctx.graph and ctx.graph:count() > 0) then -- nothing made by default type or generator
      if ctx.readsGrad then self:check({kind = 'gradmode'}, guards.gradmode(self, {value = ctx.gradAtStart})) end
      return
   end
   local alias = aliasPairs(ctx.inputs)
   self.tguard = C.guardNew(rows, alias, #ctx.keyNumbers)
   local list, g = many or self:list(names), {kind = 'tensors', count = #rows}
   if not ctx.dynamic then return self:check(g, fmt('not tguard(%s)', list), fmt('{%s}', list)) end
   self.head[#self.head + 1] = fmt('local p__ = tguard(%s)', list)
   self:check(g, 'not p__', fmt('{%s}', list))
   self:choosePlan(rows, alias)
   self:lateGuards()
end

--- What the check of the tensors is given in this call: raw tensors and numbers.
function Emit:keyArguments()
   local list, n = {}, 0
   local function add(x)
      n = n + 1
      list[n] = x
   end
   for _, v in ipairs(self.ctx.inputs) do add(v.real) end
   for _, g in ipairs(self.partial or {}) do add(g.real) end
   for _, e in ipairs(self.ctx.keyNumbers) do add(e.hint) end
   return list, n
end

--- Expressions as an argument list; long lists go through a table.
function Emit:list(names)
   if #names <= MAXARGS then return concat(names, ', ') end
   self.T = self.T or {}
   for i, name in ipairs(names) do self.head[#self.head + 1] = fmt('T[%d] = %s', i, name) end
   return fmt('unpack(T, 1, %d)', #names)
end

-- Values at the end --------------------------------------------------------------------------------------------------------------

local val = {}

function val.const(self, v)
   if v.src and not v.g then return self:load(v.src) end
   return self:literal(v.v)
end
function val.num(self, v) return self:expr(v.e) end

--- Text of an output. A leaf that was made inside takes the gradient that it has by now along.
function Emit:out(v)
   local ctx = self.ctx
   local i = ctx:output(v)
   local text = fmt('o__%d', i)
   if self.graded[i] == nil then
      self.graded[i] = true
      local g = ctx:madeGradient(ctx.outputs[i])
      if g then self:line('setGrad(%s, %s)', text, self:out(g)) end
   end
   return text
end

function val.gnum(self, v)
   local o = self:out(v)
   local x = self.items[o]
   if not x then
      x = self:keep(self.items, fmt('item(%s)', o))
      self.items[o] = x
   end
   return x
end

-- An object that an op gave while capturing: where sizes are free, each plan has its own.
function Emit:made(x)
   if not self.ctx.dynamic then return self:k(x) end
   return fmt('H[%d]', self.ctx:holeOf(x))
end

function val.tensor(self, v)
   if v.src then return self:load(v.src) end
   if v.made then
      local x = self.built[v]
      if not x then
         x = self:keep(self.body, fmt('clone(%s)', self:made(v.real)))
         self.built[v] = x
      end
      return x
   end
   return self:out(v)
end

function val.thread(self, v) self.ctx:brk('escape', 'a coroutine', nil, v.at) end

function val.udata(self, v)
   if v.src then return self:load(v.src) end
   if not (okC and C.torch.isStorage and C.torch.isStorage(v.real)) then self.ctx:brk('escape', 'a userdata made inside') end
   local x = self.built[v]
   if not x then
      x = self:keep(self.body, fmt('cloneStorage(%s)', self:made(v.real)))
      self.built[v] = x
   end
   return x
end

-- Raw key of a table -> text.
function Emit:keyText(key)
   local ctx = self.ctx
   if type(key) == 'table' and ctx.valueKeys and ctx.valueKeys[key] then return self:val(key) end
   return self:literal(key)
end

function val.table(self, v)
   if v.real then return self:load(v.src) end
   local name = self.built[v]
   if name then return name end
   local sized = v.narray and v.narray + v.nhash > 0
   name = self:keep(self.body, sized and fmt('tableNew(%d, %d)', v.narray, v.nhash) or '{}')
   self.built[v] = name
   for _, key in ipairs(v.order) do
      local item = v.f[key]
      if v.shadow[key] then
         local k, x = self:keyText(key), self:val(item)
         self.body[#self.body + 1] = fmt('%s[%s] = %s', name, k, x)
      end
   end
   if v.meta then
      local mt = self:val(v.meta)
      self.body[#self.body + 1] = fmt('dsetmetatable(%s, %s)', name, mt)
   end
   return name
end

local function envOf(fn)
   while fn.env do fn = fn.env end
   return getfenv(fn.real)
end

function val.func(self, v)
   if v.real then return self:load(v.src) end
   if v.model then self.ctx:brk('escape', 'a function of the library', nil, v.at) end
   local name = self.built[v]
   if name then return name end
   local bytecode = require 'relume.jit.bytecode'
   name = self:keep(self.body, fmt('%s()', self:k(bytecode.maker(v.proto))))
   self.built[v] = name
   local e = envOf(v)
   if e ~= _G then self.body[#self.body + 1] = fmt('setfenv(%s, %s)', name, self:k(e)) end
   for i, c in ipairs(v.cells) do
      if c.src then
         local f = c.src.kind == 'upv' and self:k(c.src.f) or self:load(c.src.parent)
         self.body[#self.body + 1] = fmt('upvaluejoin(%s, %d, %s, %d)', name, i, f, c.src.key)
      elseif self.built[c] then
         self.body[#self.body + 1] = fmt('upvaluejoin(%s, %d, %s)', name, i, self.built[c])
      else
         self.built[c] = fmt('%s, %d', name, i)
         local x = self:val(self.ctx:cellGet(c))
         self.body[#self.body + 1] = fmt('setupvalue(%s, %d, %s)', name, i, x)
      end
   end
   return name
end

--- Expression that gives a value after the plan has run.
function Emit:val(v) return val[v.k](self, v) end

-- Effects ----------------------------------------------------------------------------------------------------------------------

function Emit:line(...) self.body[#self.body + 1] = fmt(...) end

local change = {}
function change.flag(self, c, x) self:line('requiresGrad(%s, %s)', x, tostring(c.on)) end
function change.history(self, c)
   local ctx = self.ctx
   ctx.rewritten = ctx.rewritten or {}
   if not ctx.rewritten[c.v] then
      ctx.rewritten[c.v] = true
      table.insert(ctx.rewritten, c.v)
   end
end
function change.grad(self, c, x) self:line('setGrad(%s, %s)', x, self:out(self.ctx.byfake[c.fake] or {k = 'tensor', fake = c.fake})) end
function change.ungrad(self, _, x) self:line('setGrad(%s, nil)', x) end

-- A tape's records of captured code are dropped, whatever was there.
local function isTape(t)
   local mt = debug.getmetatable(t.real)
   return mt and rawget(mt, '__tape')
end

-- What stays of a record: see records.lua.
function Emit:record(v, module)
   local ctx = self.ctx
   local u = ctx.kept and ctx.kept[v]
   if not u then return 'nil' end
   local x = self:val(u.x)
   if ctx.joint and ctx.joint.holds then return self:heldRecord(u, x, module) end
   local pending = ctx.joint and fmt('o__%d', ctx.joint.nout + 1) or 'nil'
   if not u.target then return fmt('{pending = %s, k = %d, x = %s}', pending, u.k or 0, x) end
   local source, target = self:val(u.source), self:val(u.target)
   return fmt('{pending = %s, k = %d, x = %s, source = %s, target = %s, loss = true}', pending, u.k or 0, x, source, target)
end

-- Where the plan itself holds what it leaves: that, or with what only this record knows. module: the key, nil when it may be another one at the next
-- call (an argument's), whose run before then keeps its record.
function Emit:heldRecord(u, x, module)
   local held, out = fmt('o__%d', self.ctx.joint.nout + 1), x:match '^o__(%d+)$'
   u.out = tonumber(out)
   self.movingRecords = self.movingRecords or not module
   if out and module and not u.target then
      u.module = module
      return held
   end
   local fields = {fmt('held = %s, k = %d', held, u.k)}
   if not out then fields[#fields + 1] = 'x = ' .. x end
   if u.target then fields[#fields + 1] = fmt('source = %s, target = %s, loss = true', self:val(u.source), self:val(u.target)) end
   return fmt('{%s}', concat(fields, ', '))
end

function Emit:tableWrites(t)
   local x, tape = self:load(t.src), isTape(t)
   for _, key in ipairs(t.order) do
      local v = t.f[key]
      if tape then
         local src = self.ctx.tapeKeys[key]
         if not (self.ctx.valueKeys and self.ctx.valueKeys[key]) then
            self:line('rawset(%s, %s, %s)', x, src and self:load(src) or self:keyText(key), self:record(v, not src and key or nil))
         end
      elseif v ~= t.orig[key] and not inner.skips(self.ctx, t, key, v) then
         local k, y = self:keyText(key), self:val(v)
         self:line('rawset(%s, %s, %s)', x, k, y)
      end
   end
end

-- Writes at places that change (see grow.lua).
function Emit:blindWrites(t)
   for _, w in ipairs(t.blind or {}) do
      local x, k, y = self:load(t.src), self:expr(w.key.e), self:val(w.v)
      self:line('rawset(%s, %s, %s)', x, k, y)
   end
end

function Emit:upvalueWrites()
   for _, c in ipairs(self.ctx.touchedCells) do
      if c.v ~= c.orig then
         local x = self:val(c.v)
         local name = c.src.kind == 'upv' and self:up(c.src)
         if name then self:line('%s = %s', name, x)
         elseif c.src.kind == 'upv' then self:line('setupvalue(%s, %d, %s)', self:k(c.src.f), c.src.key, x)
         else self:line('setupvalue(%s, %d, %s)', self:load(c.src.parent), c.src.key, x) end
      end
   end
end

-- A record that is dropped is made again by a backward outside; random ops would then differ.
local function checkRecords(ctx)
   for _, t in ipairs(ctx.touched) do
      for key, where in pairs(t.unread or {}) do
         local off = t.f[key].f and t.f[key].f.off
         if not (off and off.v == true) and not (ctx.kept and ctx.kept[t.f[key]]) then
            ctx:brk('backward-outside', type(key) == 'table' and C.torch.typename(key) or 'a module', where)
         end
      end
   end
end

-- Effects in order -----------------------------------------------------------------------------------------------------------------

-- Outputs without a history that are views of inputs or of other outputs stay such: later writes of taped values reach both.
function Emit:viewsOfBases()
   local outputs = self.ctx.outputs
   if not outputs then return end
   local at = {}
   for _, v in ipairs(self.ctx.inputs) do at[tostring(select(2, C.history(v.fake)))] = self:load(v.src) end
   for i = 1, outputs.n do
      if outputs[i] then at[tostring(select(2, C.history(outputs[i].fake)))] = fmt('o__%d', i) end
   end
   for i = 1, outputs.n do
      local fake = outputs[i] and not outputs[i].src and outputs[i].fake
      local base, leaf
      if fake and not fake:requiresGrad() then base, leaf = select(4, C.history(fake)) end
      if base and not at[tostring(base)] and leaf:requiresGrad() then self.ctx:brk('grad-escapes', 'a view of a leaf') end
      if base and at[tostring(base)] then self:line('viewOf(%s, o__%d)', at[tostring(base)], i) end
   end
end

function Emit:effects(results)
   local ctx = self.ctx
   checkRecords(ctx)
   local tensors = inner.stay(ctx, ctx.graph and ctx:tensorChanges() or {}, results)
   local sets = {}
   for _, c in ipairs(tensors) do
      if c.kind == 'set' then sets[#sets + 1] = fmt('%s, %s', self:load(c.v.src), self:out(c.v)) end
   end
   sets = self:setByPlan(sets)
   for i = 1, #sets, 40 do self:line('setAll(%s)', concat(sets, ', ', i, math.min(i + 39, #sets))) end
   for _, c in ipairs(tensors) do
      if c.kind ~= 'set' then change[c.kind](self, c, self:load(c.v.src)) end
   end
   for _, t in ipairs(ctx.touched) do self:tableWrites(t) end
   for _, t in ipairs(ctx.blind or {}) do self:blindWrites(t) end
   for _, t in ipairs(ctx.metaTouched or {}) do
      self:line('dsetmetatable(%s, %s)', self:load(t.src), t.meta and self:val(t.meta) or 'nil')
   end
   self:upvalueWrites()
   if ctx.gradEnd ~= nil and ctx.gradEnd ~= ctx.gradStart then self:line('setGradEnabled(%s)', tostring(ctx.gradEnd)) end
   if ctx.exit then
      self.final = ctx.exit.throw and self:throw(ctx.exit.throw) or self:leave(ctx.exit)
      self:viewsOfBases()
      return
   end
   local list = {}
   for i = 1, results.n do list[i] = self:val(results[i] or value.NIL) end
   self.returns = concat(list, ', ')
   self:viewsOfBases()
end

-- Two variables of closures that may be other ones at the next call must stay two when one is written.
function Emit:distinctCells()
   local list = self.ctx.cellList
   for i, a in ipairs(list) do
      for k = 1, i - 1 do
         local b = list[k]
         if (a.dirty or b.dirty) and (a.src.kind == 'fupv' or b.src.kind == 'fupv') then
            local g = {kind = 'distinctcell', src = a.src, other = b.src}
            self:check(g, guard.conditions.distinctcell(self, g))
         end
      end
   end
end

-- Two tables that may be another pair at the next call must stay two when one is written.
function Emit:distinct()
   local ctx = self.ctx
   self:distinctCells()
   if #ctx.touched == 0 and not ctx.blind then return end
   local function written(t) return #t.order > 0 or t.blind end
   for _, a in ipairs(ctx.tables) do
      if a.struct then
         for _, b in ipairs(ctx.tables) do
            if a ~= b and b.g and (written(a) or written(b)) and not (b.struct and a.src.id < b.src.id) then
               self:check({kind = 'distinct', src = a.src, other = b.src}, guards.distinct(self, {other = b.src}, self:load(a.src)))
            end
         end
      end
   end
end

-- Assembly ---------------------------------------------------------------------------------------------------------------------

local PRELUDE = [[
local K, V, T, F, run, plan, tguard, miss, rt, S, P, Hs, G = ...
local type, rawget, rawset, rawequal, select, unpack, loadstring, setfenv, getmetatable, getfenv =
   type, rawget, rawset, rawequal, select, unpack, loadstring, setfenv, getmetatable, getfenv
local dgetmetatable, dsetmetatable, setupvalue, upvaluejoin = rt.dgetmetatable, rt.dsetmetatable, rt.setupvalue, rt.upvaluejoin
local upvalueOf, protoOf, sameKeys, sameContents = rt.upvalueOf, rt.protoOf, rt.sameKeys, rt.sameContents
local setAll, dropAll, dropHeld, grad, setGrad, requiresGrad, item, clone, cloneStorage, gradEnabled, setGradEnabled =
   rt.setAll, rt.dropAll, rt.dropHeld, rt.grad, rt.setGrad, rt.requiresGrad, rt.item, rt.clone, rt.cloneStorage, rt.gradEnabled, rt.setGradEnabled
local tableNew, viewOf, viewAt = rt.tableNew, rt.viewOf, rt.viewAt
local recordState, openRecord = rt.recordState, rt.openRecord
local withGrad, newCell, upvalueid = rt.withGrad, rt.newCell, rt.upvalueid
]]

--- Source text of the finished function.
function Emit:source(call)
   local lines, names = {PRELUDE}, {}
   for i, u in ipairs(self.ups) do names[i] = u.name end
   if #names > 0 then lines[#lines + 1] = 'local ' .. concat(names, ', ') end
   if self.dropsHeld then lines[#lines + 1] = "local lastHeld = setmetatable({}, {__mode = 'v'})" end
   self:chunkLines(lines)
   lines[#lines + 1] = fmt('return function(%s)', self.args)
   if self.spill and self.final then lines[#lines + 1] = 'local V = {}' end -- what runs in between may come here again
   for _, l in ipairs(self.head) do lines[#lines + 1] = l end
   if call then lines[#lines + 1] = call end
   for _, l in ipairs(self.items) do lines[#lines + 1] = l end
   for _, l in ipairs(self.body) do lines[#lines + 1] = l end
   if self.final then
      lines[#lines + 1] = self.final
   elseif self.returns and self.returns ~= '' then lines[#lines + 1] = 'return ' .. self.returns end
   lines[#lines + 1] = 'end'
   return concat(lines, '\n')
end

--- The line that runs the plan.
function Emit:planCall()
   local ctx = self.ctx
   local n = ctx.outputs and ctx.outputs.n or 0
   local joint = ctx.joint
   if joint and joint.records then n = joint.nout + 1 end
   if n == 0 and not (ctx.graph and ctx.mutates) then return end
   local inputs, numbers = self.inputs, ctx.numbers
   local outs, list = {}
   for i = 1, n do outs[i] = 'o__' .. i end
   if inputs[1] ~= 'Q[1]' then
      local args = {unpack(inputs)}
      for _, e in ipairs(numbers) do args[#args + 1] = self:expr(e) end
      if self.planSets or joint and joint.holds then
         local places, names, targets = self:planPlaces(outs)
         for _, x in ipairs(targets) do args[#args + 1] = x end
         self.callsTo = true
         return self:receive(names, fmt('run(plan, %s%s%s)', self:klist(places), #args > 0 and ', ' or '', self:list(args)))
      end
      list = self:list(args)
   elseif #numbers == 0 then list = fmt('unpack(Q, 1, %d)', #inputs)
   else list = self:spread('U', #inputs + #numbers, function(i) return inputs[i] or self:expr(numbers[i - #inputs]) end) end
   if list ~= '' then list = ', ' .. list end
   if n == 0 then return fmt('run(plan%s)', list) end
   if self.planSets or joint and joint.holds then return self:planCallSet(outs, #numbers > 0 and 'U' or 'Q') end
   if n <= 60 and n + self.nlocal + (self.nresult or 0) < 180 then return fmt('local %s = run(plan%s)', concat(outs, ', '), list) end
   self.manyOutputs = true
   return fmt('local O = {run(plan%s)}', list)
end

--- Makes upvalues of a generated function, and of its chunks, those of the program.
function M.joinUpvalues(fn, ups, chunks)
   local at = {}
   for i = 1, 255 do
      local name = debug.getupvalue(fn, i)
      if not name then break end
      at[name] = i
   end
   for _, u in ipairs(ups) do
      if at[u.name] then debug.upvaluejoin(fn, at[u.name], u.f, u.key) end
   end
   for _, f in ipairs(chunks or {}) do M.joinUpvalues(f, ups) end
end

--- Emits everything but the plan; the context's graph may get outputs. results: values that the closure returns.
function M.prepare(ctx, params, vararg, results)
   local e = new(ctx, params, vararg)
   e:guards()
   e:tensors()
   e:distinct()
   e.vararg = vararg
   e.head[#e.head + 1] = ctx.exit and 'S.tried = nil' or nil
   e:effects(results)
   e:choosePlanSets()
   e:dropOutputs()
   e.call = e:planCall()
   if e.call and (e.callsTo or not e.planSets) and fail.mayFail(ctx.graph) then
      local first = e.firstResult or not e.callsTo and ctx.outputs and ctx.outputs.n > 0 and 'o__1' or 'x__1'
      if first == 'x__1' then e.call = 'local x__1 = ' .. e.call end
      e.call = fmt('%s\nif %s == rt.FAILED then return S:again(%s) end', e.call, first, e.args) -- eager raises at its place, effects before it included
   end
   e:chunkBody()
   return e
end

--- The function, given what runs the plan (plan, inputs...) and what handles a miss (index of the guard, arguments...); its text; and
-- what makes it once more with another handler and state.
function M.finish(e, run, plan, miss, runtime, state)
   local text = M.text(e)
   local chunk = assert(loadstring(text, '=compiled'))
   local K, T, tguard, ups, P, Hs = e.K, e.T, e.tguard, e.ups, {}, {[0] = M.holeValues(e)}
   e.P, e.Hs = P, Hs
   local function make(handler, owner)
      local G = {}
      local fn = chunk(K, {}, T, nil, run, plan, tguard, handler, runtime, owner, P, Hs, G)
      M.joinUpvalues(fn, ups, G)
      return fn
   end
   return make(miss, state), text, make
end

--- The function's text.
function M.text(e)
   if e.finished then return e.finished end
   local text = e:source(e.call)
   if e.manyOutputs then text = text:gsub('%f[%w_]o__(%d+)%f[^%w_]', 'O[%1]') end
   e.finished = text
   return text
end

--- Values of the holes in this capture.
function M.holeValues(e)
   local list = {}
   for i, h in ipairs(e.ctx.holes) do list[i] = h.value end
   return list
end

--- What tells two emitted functions apart (see same).
function M.identity(e) return {keyed = e.keyed, K = e.K, klists = e.klists, ups = e.ups, finished = M.text(e)} end

local function sameList(x, y)
   if #x ~= #y then return false end
   for i = 1, #x do
      if not rawequal(x[i], y[i]) then return false end
   end
   return true
end

--- True when two emitters made the same function, so that a plan of one serves the other.
function M.same(a, b)
   if not a.keyed or not b.keyed or #a.K ~= #b.K or #a.ups ~= #b.ups then return false end
   for i, x in ipairs(a.K) do
      local y = b.K[i]
      if not rawequal(x, y) and not (a.klists[i] and b.klists[i] and sameList(x, y)) then return false end
   end
   for i, u in ipairs(a.ups) do
      if u.f ~= b.ups[i].f or u.key ~= b.ups[i].key then return false end
   end
   return M.text(a) == M.text(b)
end

M.new = new
return M
