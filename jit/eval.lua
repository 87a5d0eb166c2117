-- Evaluator: runs LuaJIT bytecode on symbolic values (function value, argument values -> result values).
-- A frame keeps prototype, pc, slots and open upvalues in plain fields, so that a break can be resumed behind it.

jit.off(true, true) -- each path is evaluated once: traces would not pay, and would push out the program's

local bytecode = require 'relume.jit.bytecode'
local value = require 'relume.jit.value'
local ops = require 'relume.jit.ops'
local breaks = require 'relume.jit.breaks'
local Context = require 'relume.jit.context'

local const, NIL, TRUE, FALSE = value.const, value.NIL, value.TRUE, value.FALSE
local arith = ops.arith
local floor = math.floor

local H = {} -- opcode -> function(ctx, frame, instruction); frame.pc already points behind the instruction
local LIMIT = 5000000

-- Frames -----------------------------------------------------------------------------------------------------------------------

-- How the results of a Lua function that an instruction calls reach its frame (see chain.lua).
local RESULTS, FIRST, NONE, TAIL = {kind = 'results'}, {kind = 'first'}, {kind = 'none'}, {kind = 'tail'}
local BRANCH, NOT = ops.BRANCH, ops.NOT

local function newFrame(fn, proto, args, via)
   local f = {fn = fn, via = via, proto = proto, pc = 1, slots = {}, open = {}, multres = {n = 0}}
   local n = proto.params
   for i = 1, n do f.slots[i - 1] = args[i] or NIL end
   for i = n, proto.framesize do f.slots[i] = NIL end
   f.varargs = {n = 0}
   if proto.vararg and args.n > n then
      f.varargs.n = args.n - n
      for i = 1, f.varargs.n do f.varargs[i] = args[n + i] or NIL end
   end
   return f
end

-- Closes open upvalues of slots >= from.
local function close(f, from)
   for slot, c in pairs(f.open) do
      if slot >= from then
         c.v, c.slots = f.slots[slot], nil
         f.open[slot] = nil
      end
   end
end

local function protoOf(fn)
   return fn.proto or bytecode.of(fn.real)
end

local function execute(ctx, f)
   local code, trace = f.proto.code, ctx.trace
   while not f.ret do
      local ins = code[f.pc]
      ctx.steps = ctx.steps + 1
      if ctx.steps == ctx.stopAt then error(breaks.STOP, 0) end
      f.at, ctx.via = ctx.steps, nil
      if ctx.steps > LIMIT then ctx:brk('too-long', LIMIT) end
      if trace then trace(ctx, f, ins) end
      f.pc = f.pc + 1
      local h = H[ins.op]
      if not h then ctx:brk('opcode', ins.op) end
      h(ctx, f, ins)
   end
   return f.ret
end

--- Evaluates a Lua function value; a tail call replaces the frame. proto: what it runs, when not its own.
function Context:inline(fn, args, proto)
   local depth, via = #self.frames + 1, self.via
   self.via = nil
   if depth > 180 then self:raise 'stack overflow' end
   while true do
      local f = newFrame(fn, proto or protoOf(fn), args, via)
      f.entry, proto = proto ~= nil, nil
      self.frames[depth] = f
      self:enter(f)
      local ret = execute(self, f)
      close(f, 0)
      local tail = f.tail
      if not tail then
         self.frames[depth] = nil
         return ret
      end
      fn, args = tail.fn, tail.args
      local target, targs = self:resolve(fn, args)
      if not target then
         self.frames[depth] = nil
         self.via = via
         return self:call(fn, args)
      end
      fn, args = target, targs
   end
end

--- Cuts the frame stack back after an error (pcall).
function Context:unwind(depth)
   for i = #self.frames, depth + 1, -1 do
      close(self.frames[i], 0)
      self.frames[i] = nil
   end
end

-- Constants and moves ----------------------------------------------------------------------------------------------------------

local PRI = {[0] = NIL, [1] = FALSE, [2] = TRUE}

local function kstr(f, d) return const(f.proto.kgc[d]) end
local function knum(f, d) return const(f.proto.kn[d]) end

function H.MOV(_, f, i) f.slots[i.a] = f.slots[i.d] end
function H.KSTR(_, f, i) f.slots[i.a] = kstr(f, i.d) end
function H.KNUM(_, f, i) f.slots[i.a] = knum(f, i.d) end
function H.KPRI(_, f, i) f.slots[i.a] = PRI[i.d] end
function H.KSHORT(_, f, i) f.slots[i.a] = const(i.d > 32767 and i.d - 65536 or i.d) end
function H.KCDATA(_, f, i) f.slots[i.a] = const(f.proto.kgc[i.d].value) end
function H.KNIL(_, f, i) for s = i.a, i.d do f.slots[s] = NIL end end
function H.NOT(ctx, f, i) f.slots[i.a] = ctx:truth(f.slots[i.d]) and FALSE or TRUE end
function H.UNM(ctx, f, i) ctx.via = FIRST f.slots[i.a] = ops.unm(ctx, f.slots[i.d]) end
function H.LEN(ctx, f, i) ctx.via = FIRST f.slots[i.a] = ops.len(ctx, f.slots[i.d]) end
function H.CAT(ctx, f, i)
   if i.c == i.b + 1 then ctx.via = FIRST end
   f.slots[i.a] = ops.concat(ctx, f.slots, i.b, i.c)
end

-- Arithmetic: slot op number, number op slot, slot op slot.
for _, op in ipairs {'add', 'sub', 'mul', 'div', 'mod'} do
   local up = op:upper()
   H[up .. 'VN'] = function(ctx, f, i) ctx.via = FIRST f.slots[i.a] = arith(ctx, op, f.slots[i.b], knum(f, i.c)) end
   H[up .. 'NV'] = function(ctx, f, i) ctx.via = FIRST f.slots[i.a] = arith(ctx, op, knum(f, i.c), f.slots[i.b]) end
   H[up .. 'VV'] = function(ctx, f, i) ctx.via = FIRST f.slots[i.a] = arith(ctx, op, f.slots[i.b], f.slots[i.c]) end
end
function H.POW(ctx, f, i) ctx.via = FIRST f.slots[i.a] = arith(ctx, 'pow', f.slots[i.b], f.slots[i.c]) end

-- Tests: the next instruction is a JMP, taken when the test holds. ---------------------------------------------------------------

local function test(f, holds)
   if not holds then f.pc = f.pc + 1 end
end

function H.ISLT(ctx, f, i) ctx.via = BRANCH test(f, ops.order(ctx, 'lt', f.slots[i.a], f.slots[i.d])) end
function H.ISGE(ctx, f, i) ctx.via = NOT[BRANCH] test(f, not ops.order(ctx, 'lt', f.slots[i.a], f.slots[i.d])) end
function H.ISLE(ctx, f, i) ctx.via = BRANCH test(f, ops.order(ctx, 'le', f.slots[i.a], f.slots[i.d])) end
function H.ISGT(ctx, f, i) ctx.via = NOT[BRANCH] test(f, not ops.order(ctx, 'le', f.slots[i.a], f.slots[i.d])) end
function H.ISEQV(ctx, f, i) ctx.via = BRANCH test(f, ops.eq(ctx, f.slots[i.a], f.slots[i.d])) end
function H.ISNEV(ctx, f, i) ctx.via = NOT[BRANCH] test(f, not ops.eq(ctx, f.slots[i.a], f.slots[i.d])) end
function H.ISEQS(ctx, f, i) test(f, ops.eq(ctx, f.slots[i.a], kstr(f, i.d))) end
function H.ISNES(ctx, f, i) test(f, not ops.eq(ctx, f.slots[i.a], kstr(f, i.d))) end
function H.ISEQN(ctx, f, i) test(f, ops.eq(ctx, f.slots[i.a], knum(f, i.d))) end
function H.ISNEN(ctx, f, i) test(f, not ops.eq(ctx, f.slots[i.a], knum(f, i.d))) end
function H.ISEQP(ctx, f, i) test(f, ops.eq(ctx, f.slots[i.a], PRI[i.d])) end
function H.ISNEP(ctx, f, i) test(f, not ops.eq(ctx, f.slots[i.a], PRI[i.d])) end
function H.IST(ctx, f, i) test(f, ctx:truth(f.slots[i.d])) end
function H.ISF(ctx, f, i) test(f, not ctx:truth(f.slots[i.d])) end

function H.ISTC(ctx, f, i)
   local v = f.slots[i.d]
   local holds = ctx:truth(v)
   if holds then f.slots[i.a] = v end
   test(f, holds)
end

function H.ISFC(ctx, f, i)
   local v = f.slots[i.d]
   local holds = not ctx:truth(v)
   if holds then f.slots[i.a] = v end
   test(f, holds)
end

-- Upvalues and closures ----------------------------------------------------------------------------------------------------------

function H.UGET(ctx, f, i) f.slots[i.a] = ctx:cellGet(ctx:cell(f.fn, i.d + 1)) end
function H.USETV(ctx, f, i) ctx:cellSet(ctx:cell(f.fn, i.a + 1), f.slots[i.d]) end
function H.USETS(ctx, f, i) ctx:cellSet(ctx:cell(f.fn, i.a + 1), kstr(f, i.d)) end
function H.USETN(ctx, f, i) ctx:cellSet(ctx:cell(f.fn, i.a + 1), knum(f, i.d)) end
function H.USETP(ctx, f, i) ctx:cellSet(ctx:cell(f.fn, i.a + 1), PRI[i.d]) end

function H.UCLO(_, f, i)
   close(f, i.a)
   f.pc = i.target
end

function H.FNEW(ctx, f, i)
   local proto = f.proto.kgc[i.d].proto
   if not proto.maker then bytecode.maker(proto, protoOf(f.fn) == f.proto and f.fn.real, i.d) end
   local cells = {}
   for u = 0, proto.nuv - 1 do
      local d = proto.uv[u]
      if d >= 32768 then
         local slot = d % 256
         local c = f.open[slot]
         if not c then
            c = {slots = f.slots, slot = slot, immutable = d >= 49152, at = ctx.steps}
            f.open[slot] = c
         end
         cells[u + 1] = c
      else
         cells[u + 1] = ctx:cell(f.fn, d + 1)
      end
   end
   f.slots[i.a] = {k = 'func', proto = proto, cells = cells, env = f.fn}
end

-- Tables -------------------------------------------------------------------------------------------------------------------------

function H.TNEW(ctx, f, i)
   local array, hash = i.d % 2048, floor(i.d / 2048)
   if array == 2047 then array = 2049 end
   local t = value.newTable(math.max(array - 1, 0), hash > 0 and 2 ^ hash or 0)
   t.line = ctx:where()
   f.slots[i.a] = t
end

function H.TDUP(ctx, f, i)
   local k = f.proto.kgc[i.d]
   local t = value.newTable(math.max(k.narray - 1, 0), k.nhash)
   t.line = ctx:where()
   local n = k.narray
   for key = 0, n - 1 do
      if k.array[key] ~= nil then ctx:rawset(t, key, const(k.array[key])) end
   end
   for _, pair in ipairs(k.hash) do
      if pair[2] ~= nil then ctx:rawset(t, pair[1], const(pair[2])) end
   end
   f.slots[i.a] = t
end

local function env(ctx, fn)
   while fn.env do fn = fn.env end
   local e = getfenv(fn.real)
   if e ~= _G and not fn.envGuard then -- the usual one is taken for granted
      fn.envGuard = true
      if fn.src.kind == 'const' then ctx:guard {kind = 'env', f = fn.real, value = e} end
   end
   return ctx:constant(e, e == _G and 'globals' or 'environment')
end

function H.GGET(ctx, f, i) ctx.via = FIRST f.slots[i.a] = ops.index(ctx, env(ctx, f.fn), kstr(f, i.d)) end
function H.GSET(ctx, f, i) ctx.via = NONE ops.newindex(ctx, env(ctx, f.fn), kstr(f, i.d), f.slots[i.a]) end
function H.TGETV(ctx, f, i) ctx.via = FIRST f.slots[i.a] = ops.index(ctx, f.slots[i.b], f.slots[i.c]) end
function H.TGETS(ctx, f, i) ctx.via = FIRST f.slots[i.a] = ops.index(ctx, f.slots[i.b], kstr(f, i.c)) end
function H.TGETB(ctx, f, i) ctx.via = FIRST f.slots[i.a] = ops.index(ctx, f.slots[i.b], const(i.c)) end
function H.TSETV(ctx, f, i) ctx.via = NONE ops.newindex(ctx, f.slots[i.b], f.slots[i.c], f.slots[i.a]) end
function H.TSETS(ctx, f, i) ctx.via = NONE ops.newindex(ctx, f.slots[i.b], kstr(f, i.c), f.slots[i.a]) end
function H.TSETB(ctx, f, i) ctx.via = NONE ops.newindex(ctx, f.slots[i.b], const(i.c), f.slots[i.a]) end

-- Only in LuaJIT's own library: array elements without metamethods, checks of arguments.
function H.TGETR(ctx, f, i) f.slots[i.a] = ctx:rawget(f.slots[i.b], ctx:specialise(f.slots[i.c])) end
function H.TSETR(ctx, f, i) ctx:rawset(f.slots[i.b], ctx:specialise(f.slots[i.c]), f.slots[i.a]) end

local TYPES = {[5] = 'string', [9] = 'function', [12] = 'table'}

function H.ISTYPE(ctx, f, i)
   local v, want = f.slots[i.a], TYPES[i.d]
   if not want or v.k == 'gnum' then ctx:brk('needs-values', 'an argument of a library function') end
   if want == 'string' and value.isNumber(v) then
      f.slots[i.a] = const(tostring(ctx:textOf(v)))
      return
   end
   ctx:needType(v)
   if value.luatype(v) ~= want then ctx:raise(("bad argument #%d to '?' (%s expected, got %s)"):format(i.a + 1, want, value.luatype(v))) end
end

function H.ISNUM(ctx, f, i)
   local v = f.slots[i.a]
   if not value.isNumber(v) then ctx:brk('needs-values', 'an argument of a library function') end
   ctx:needNum(v)
end

-- Multiple results stored from a start index; the constant is 2^52 + index.
function H.TSETM(ctx, f, i)
   local first = f.proto.kn[i.d] - 4503599627370496
   local t = f.slots[i.a - 1]
   if not t.real then value.growArray(t, first + f.multres.n) end
   for k = 1, f.multres.n do ctx:rawset(t, first + k - 1, f.multres[k] or NIL) end
end

-- Calls --------------------------------------------------------------------------------------------------------------------------

local function setResults(f, base, want, r)
   if want < 0 then
      f.multres = r
      for k = 1, r.n do f.slots[base + k - 1] = r[k] or NIL end
   else
      for k = 1, want do f.slots[base + k - 1] = k <= r.n and r[k] or NIL end
   end
end

local function arguments(f, a, n, multi)
   local base = a + f.proto.fr2
   local args = {n = n + (multi and f.multres.n or 0)}
   for k = 1, n do args[k] = f.slots[base + k] end
   if multi then
      for k = 1, f.multres.n do args[n + k] = f.multres[k] or NIL end
   end
   return args
end

local function callAt(ctx, f, i, args)
   ctx.via = RESULTS
   setResults(f, i.a, i.b - 1, ctx:call(f.slots[i.a], args))
end

function H.CALL(ctx, f, i) callAt(ctx, f, i, arguments(f, i.a, i.c - 1)) end
function H.CALLM(ctx, f, i) callAt(ctx, f, i, arguments(f, i.a, i.c, true)) end

local function tailcall(ctx, f, fn, args)
   local target, targs = ctx:resolve(fn, args)
   if target then
      f.tail, f.ret = {fn = target, args = targs}, {n = 0}
   else
      ctx.via = TAIL
      f.ret = ctx:call(fn, args)
   end
end

function H.CALLT(ctx, f, i) tailcall(ctx, f, f.slots[i.a], arguments(f, i.a, i.d - 1)) end
function H.CALLMT(ctx, f, i) tailcall(ctx, f, f.slots[i.a], arguments(f, i.a, i.d, true)) end

function H.ITERC(ctx, f, i)
   local s, a = f.slots, i.a
   ctx.via = RESULTS
   setResults(f, a, i.b - 1, ctx:call(s[a - 3], {s[a - 2], s[a - 1], n = 2}))
end

H.ITERN = H.ITERC

function H.ITERL(ctx, f, i)
   local v = f.slots[i.a]
   if not ctx:isNil(v) then
      ctx:present(v)
      f.slots[i.a - 1] = v
      f.pc = i.target
   end
end

function H.ISNEXT(_, f, i) f.pc = i.target end

function H.VARG(_, f, i) setResults(f, i.a, i.b - 1, {n = f.varargs.n, unpack(f.varargs, 1, f.varargs.n)}) end

local function results(f, a, n, multi)
   local r = {n = n + (multi and f.multres.n or 0)}
   for k = 1, n do r[k] = f.slots[a + k - 1] end
   if multi then
      for k = 1, f.multres.n do r[n + k] = f.multres[k] or NIL end
   end
   return r
end

function H.RET(_, f, i) f.ret = results(f, i.a, i.d - 1) end
function H.RETM(_, f, i) f.ret = results(f, i.a, i.d, true) end
function H.RET0(_, f) f.ret = {n = 0} end
function H.RET1(_, f, i) f.ret = {n = 1, f.slots[i.a]} end

-- Loops --------------------------------------------------------------------------------------------------------------------------

local NAMES = {[0] = 'initial', 'limit', 'step'}

local function bound(ctx, f, slot, k)
   local v = f.slots[slot]
   if v.k == 'gnum' then ctx:brk('data-dependent', 'the bound of a loop') end
   local x = ctx:specialise(v)
   if type(x) == 'string' then x = tonumber(x) end
   if type(x) ~= 'number' then ctx:raise(("'for' %s%s must be a number"):format(NAMES[k], k == 0 and ' value' or '')) end
   return x
end

local function specialised(ctx, f, slot, k)
   local v = f.slots[slot]
   if v.k == 'table' or v.k == 'tensor' or v.k == 'func' or v.k == 'udata' then
      ctx:raise(("'for' %s%s must be a number"):format(NAMES[k], k == 0 and ' value' or ''))
   end
   return bound(ctx, f, slot, k)
end

function H.FORI(ctx, f, i)
   local a, s = i.a, f.slots
   local idx, stop, step = specialised(ctx, f, a, 0), specialised(ctx, f, a + 1, 1), specialised(ctx, f, a + 2, 2)
   s[a], s[a + 1], s[a + 2] = const(idx), const(stop), const(step)
   if step >= 0 and idx <= stop or step < 0 and idx >= stop then s[a + 3] = const(idx) else f.pc = i.target end
end

-- A loop that a graph break was in: index and limit were given to the resume function.
local function symbolicLoop(ctx, f, i)
   local a, s = i.a, f.slots
   local step = bound(ctx, f, a + 2, 2)
   s[a + 2] = const(step)
   local idx = arith(ctx, 'add', s[a], s[a + 2])
   local x, y = idx, s[a + 1]
   if step < 0 then x, y = y, x end
   if ops.order(ctx, 'le', x, y) then
      s[a], s[a + 3] = idx, idx
      f.pc = i.target
   end
end

function H.FORL(ctx, f, i)
   local a, s = i.a, f.slots
   if s[a].k ~= 'const' or s[a + 1].k ~= 'const' or s[a + 2].k ~= 'const' then return symbolicLoop(ctx, f, i) end
   local idx, stop, step = s[a].v + s[a + 2].v, s[a + 1].v, s[a + 2].v
   if step >= 0 and idx <= stop or step < 0 and idx >= stop then
      s[a], s[a + 3] = const(idx), const(idx)
      f.pc = i.target
   end
end

function H.LOOP() end
function H.JMP(_, f, i) f.pc = i.target end

local M = {handlers = H, newFrame = newFrame, floor = floor, breaks = breaks}
return M
