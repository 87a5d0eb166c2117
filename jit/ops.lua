-- Operators: arithmetic, comparison, concatenation, length, indexing, with their metamethods (values -> value).
-- Numbers loaded from the program stay expressions; numbers that the graph computes become tensor ops.

jit.off(true, true) -- each path is evaluated once: traces would not pay, and would push out the program's

local value = require 'relume.jit.value'
local names = require 'relume.jit.names'
local resume = require 'relume.jit.resume'
local const, NIL, isNumber, luatype = value.const, value.NIL, value.isNumber, value.luatype
local okC, C = pcall(require, 'relume.core')

local M = {}

local compute = {
   add = function(a, b) return a + b end, sub = function(a, b) return a - b end, mul = function(a, b) return a * b end,
   div = function(a, b) return a / b end, mod = function(a, b) return a % b end, pow = function(a, b) return a ^ b end,
}
local compare = {
   lt = function(a, b) return a < b end, le = function(a, b) return a <= b end, eq = function(a, b) return a == b end,
}
M.compute, M.compare = compute, compare
local DEPTH = 60 -- a longer chain of operations is a loop that counts: its numbers are taken as they are
local graphOps = {add = 'add', sub = 'sub', mul = 'mul', div = 'div', pow = 'pow'}

-- Metamethods --------------------------------------------------------------------------------------------------------------------

--- Metamethod of a value as a value, or nil.
function M.metamethod(ctx, v, event)
   local mt
   if v.k == 'table' then
      mt = ctx:metatable(v)
   elseif (v.k == 'tensor' or v.k == 'udata') and (v.real or v.fake) then
      local raw = debug.getmetatable(v.real or v.fake)
      ctx:needType(v)
      mt = raw and ctx:constant(raw, 'metatable')
   elseif v.k == 'const' and type(v.v) == 'cdata' then
      return nil
   end
   if not mt then return end
   local h = ctx:rawget(mt, event)
   if ctx:isNil(h) then return end
   return h
end

local function binaryHandler(ctx, a, b, event)
   return M.metamethod(ctx, a, event) or M.metamethod(ctx, b, event)
end

-- Arithmetic ---------------------------------------------------------------------------------------------------------------------

local function tonum(ctx, v)
   if v.k == 'num' then return v end
   if v.k == 'const' then
      local n = type(ctx:need(v)) == 'string' and tonumber(v.v) or v.v
      if type(n) == 'number' then return const(n) end
   end
end

local function describe(ctx, v)
   return ('a %s value'):format(luatype(v))
end

-- Operands of the instructions that can raise for one, by what they attempt.
local operands = {['perform arithmetic on'] = {UNM = 'd', POW = 'bc'}, ['get length of'] = {LEN = 'd'}, call = {CALL = 'a', CALLM = 'a'},
   index = {TGETV = 'b', TGETS = 'b', TGETB = 'b', TSETV = 'b', TSETS = 'b', TSETB = 'b'}}
for _, op in ipairs {'ADD', 'SUB', 'MUL', 'DIV', 'MOD'} do
   for form, letters in pairs {VN = 'b', NV = 'b', VV = 'bc'} do operands['perform arithmetic on'][op .. form] = letters end
end

--- Raises LuaJIT's error for an operand of the running instruction, with the name of the variable that it is in.
function M.operandError(ctx, what, v)
   local f = ctx.frames[#ctx.frames]
   local p, pc = f and f.proto, f and f.pc - 1
   local i = p and p.code[pc]
   ctx:needType(v)
   for letter in (i and operands[what] and operands[what][i.op] or ''):gmatch '%a' do
      if f.slots[i[letter]] == v and not resume.origin(p) then
         local kind, name = names.slot(p, pc, i[letter])
         if kind then ctx:raise(("attempt to %s %s '%s' (a %s value)"):format(what, kind, name, luatype(v)), true) end
         ctx:raise(('attempt to %s %s'):format(what, describe(ctx, v)), true)
      end
   end
   ctx:raise(('attempt to %s %s'):format(what, describe(ctx, v)))
end

local function arithError(ctx, a, b)
   local bad = tonum(ctx, a) and b or a
   M.operandError(ctx, 'perform arithmetic on', bad)
end

--- a op b for op in add sub mul div mod pow.
function M.arith(ctx, op, a, b)
   if a.k == 'const' and b.k == 'const' and type(a.v) == 'number' and type(b.v) == 'number' then
      return const(compute[op](a.v, b.v))
   end
   if isNumber(a) and isNumber(b) then
      ctx:needNum(a)
      ctx:needNum(b)
      local depth = math.max(a.depth or 0, b.depth or 0) + 1
      if depth > DEPTH then return const(compute[op](ctx:specialise(a), ctx:specialise(b))) end
      local r = value.num({op = op, a = value.expr(a), b = value.expr(b)}, compute[op](a.hint or a.v, b.hint or b.v))
      r.depth = depth
      return r
   end
   if a.k == 'gnum' or b.k == 'gnum' then
      local other = a.k == 'gnum' and b or a
      if other.k == 'gnum' or isNumber(other) then return M.graphArith(ctx, op, a, b) end
   end
   local na, nb = tonum(ctx, a), tonum(ctx, b)
   if na and nb then return M.arith(ctx, op, na, nb) end
   if type(a.v) == 'cdata' or type(b.v) == 'cdata' then return const(compute[op](ctx:specialise(a), ctx:specialise(b))) end
   local h = binaryHandler(ctx, a, b, '__' .. op)
   if not h then arithError(ctx, a, b) end
   return ctx:call(h, {a, b, n = 2})[1] or NIL
end

-- Lua computes in doubles, so a number that the graph computes is one from its first use in arithmetic on.
local function double(ctx, v)
   if v.k ~= 'gnum' or v.double then return v end
   local name = C.tensorFacts(v.fake)
   if name == 'torch.DoubleTensor' then return v end
   return {k = 'gnum', fake = ctx:callC(C.op.cast, {v, const 'torch.DoubleTensor', n = 2})[1].fake, double = true}
end
M.double = double

--- Arithmetic on a number of the graph: an op on rank-0 tensors.
function M.graphArith(ctx, op, a, b)
   a, b = double(ctx, a), double(ctx, b)
   if not graphOps[op] then
      if op == 'mod' then
         local q = M.graphArith(ctx, 'div', a, b)
         local f = ctx:callC(C.op.floor, {q, n = 1})[1]
         f.k = 'gnum'
         return M.graphArith(ctx, 'sub', a, M.graphArith(ctx, 'mul', f, b))
      end
      ctx:brk('data-dependent', op)
   end
   local r = ctx:callC(C.op[graphOps[op]], {a, b, n = 2})[1]
   return {k = 'gnum', fake = r.fake}
end

--- -v
function M.unm(ctx, v)
   local n = tonum(ctx, v)
   if n and n.k == 'const' then return const(-n.v) end
   if n then
      ctx:needNum(n)
      return value.num({op = 'unm', a = n.e}, -n.hint)
   end
   if v.k == 'gnum' then return {k = 'gnum', fake = ctx:callC(C.op.neg, {double(ctx, v), n = 1})[1].fake} end
   local h = M.metamethod(ctx, v, '__unm')
   if not h then arithError(ctx, v, v) end
   return ctx:call(h, {v, v, n = 2})[1] or NIL
end

-- Comparison ---------------------------------------------------------------------------------------------------------------------

local function sameObject(ctx, a, b)
   if a == b then return true end
   if a.fake and b.fake and a.fake == b.fake then return true end
   return false
end

--- rawequal(a, b) as a boolean.
function M.rawequal(ctx, a, b)
   local ta, tb = luatype(a), luatype(b)
   if ta ~= tb then
      ctx:needType(a)
      ctx:needType(b)
      return false
   end
   if ta == 'number' then
      if a.k == 'gnum' or b.k == 'gnum' then ctx:brk('data-dependent', 'a comparison') end
      if a.k == 'const' and b.k == 'const' then return a.v == b.v end
      return ctx:guardTest('eq', a, b, (a.hint or a.v) == (b.hint or b.v))
   end
   if a.k == 'const' then return ctx:need(a) == ctx:need(b) end
   if a ~= b and not (a.fake and not a.src and b.fake and not b.src) then
      if a.real then ctx:needIdentity(a) end
      if b.real then ctx:needIdentity(b) end
   end
   return sameObject(ctx, a, b)
end

--- a == b as a boolean, with __eq.
function M.eq(ctx, a, b)
   if M.rawequal(ctx, a, b) then return true end
   if a.k ~= b.k or a.k ~= 'table' and a.k ~= 'tensor' and a.k ~= 'udata' then return false end
   local h, h2 = M.metamethod(ctx, a, '__eq'), M.metamethod(ctx, b, '__eq')
   if not h or h ~= h2 then return false end
   return ctx:truth(ctx:call(h, {a, b, n = 2})[1] or NIL)
end

local function orderError(ctx, a, b)
   local ta, tb = luatype(a), luatype(b)
   ctx:needType(a)
   ctx:needType(b)
   if ta == tb then ctx:raise(('attempt to compare two %s values'):format(ta), true) end
   ctx:raise(('attempt to compare %s with %s'):format(ta, tb), true)
end

-- How a test's outcome goes on behind a graph break in its metamethod, negated.
local BRANCH, NOTBRANCH = {kind = 'branch'}, {kind = 'branch', negate = true}
M.NOT = {[BRANCH] = NOTBRANCH, [NOTBRANCH] = BRANCH}
M.BRANCH = BRANCH

--- a < b (op lt) or a <= b (op le) as a boolean.
function M.order(ctx, op, a, b)
   local ta, tb = luatype(a), luatype(b)
   if ta == 'number' and tb == 'number' then
      if a.k == 'gnum' or b.k == 'gnum' then ctx:brk('data-dependent', 'a comparison') end
      if a.k == 'const' and b.k == 'const' then return compare[op](a.v, b.v) end
      return ctx:guardTest(op, a, b, compare[op](a.hint or a.v, b.hint or b.v))
   end
   if ta == 'string' and tb == 'string' then return compare[op](ctx:need(a), ctx:need(b)) end
   local h = binaryHandler(ctx, a, b, '__' .. op)
   if h then return ctx:truth(ctx:call(h, {a, b, n = 2})[1] or NIL) end
   if op == 'le' then
      h = binaryHandler(ctx, a, b, '__lt')
      if h then ctx.via = M.NOT[ctx.via] return not ctx:truth(ctx:call(h, {b, a, n = 2})[1] or NIL) end
   end
   if ta == 'cdata' or tb == 'cdata' then return compare[op](ctx:specialise(a), ctx:specialise(b)) end
   orderError(ctx, a, b)
end

-- Concatenation and length -------------------------------------------------------------------------------------------------------

local function text(ctx, v)
   if v.k == 'gnum' then ctx:brk('data-dependent', 'a string made from it') end
   if isNumber(v) then return tostring(ctx:textOf(v)) end
   if v.k == 'const' and type(v.v) == 'string' then return ctx:need(v) end
end

local function concat2(ctx, a, b)
   local sa, sb = text(ctx, a), text(ctx, b)
   if sa and sb then return const(sa .. sb) end
   local h = binaryHandler(ctx, a, b, '__concat')
   if h then return ctx:call(h, {a, b, n = 2})[1] or NIL end
   ctx:raise(('attempt to concatenate %s'):format(describe(ctx, sa and b or a)))
end

--- Concatenates slots from .. to, right to left.
function M.concat(ctx, slots, from, to)
   local acc = slots[to]
   for i = to - 1, from, -1 do acc = concat2(ctx, slots[i], acc) end
   return acc
end

--- #v
function M.len(ctx, v)
   if v.k == 'const' and type(v.v) == 'string' then return const(#ctx:need(v)) end
   if v.k == 'table' then
      if M.lenMetamethods then
         local h = M.metamethod(ctx, v, '__len')
         if h then return ctx:call(h, {v, n = 1})[1] or NIL end
      end
      return ctx:length(v)
   end
   local h = M.metamethod(ctx, v, '__len')
   if h then return ctx:call(h, {v, v, n = 2})[1] or NIL end
   M.operandError(ctx, 'get length of', v)
end
M.lenMetamethods = #setmetatable({}, {__len = function() return 7 end}) == 7

-- Indexing -----------------------------------------------------------------------------------------------------------------------

local function isMethodKey(key) return key.k == 'const' and type(key.v) == 'string' end

-- A method of a userdata: its metatable is always the same for its type.
local function method(ctx, obj, key)
   local mt = debug.getmetatable(obj.real or obj.fake)
   local name = ctx:need(key)
   if not mt then ctx:raise(('attempt to index %s'):format(describe(ctx, obj))) end
   ctx:needType(obj)
   local t = ctx:constant(mt, 'methods')
   local r = ctx:rawget(t, name)
   if not ctx:isNil(r) then return r end
   local h = ctx:rawget(t, '__index')
   if h.k == 'table' and h ~= t then return M.index(ctx, h, key) end
   local parent = ctx:metatable(t)
   if parent then return M.index(ctx, t, key) end
   if h.k == 'func' and not okC then return ctx:call(h, {obj, key, n = 2})[1] or NIL end
   return NIL
end

-- A package that loads its fields at first use: eager would load it now, and a loaded field is a plain one.
local function autoload(ctx, t, key)
   if ctx.graph or not t.real or t.order[1] or key.k ~= 'const' or type(key.v) ~= 'string' then return end
   if not ctx.packages then
      ctx.packages = {}
      for _, package in pairs(package.loaded) do ctx.packages[package] = true end
   end
   if not ctx.packages[t.real] then return end
   local ok = pcall(function() return t.real[key.v] end)
   if not ok or rawget(t.real, key.v) == nil then return end
   t.f[key.v] = nil
   return ctx:rawget(t, key.v)
end

--- t[key]
function M.index(ctx, t, key)
   local k = t.k
   if k == 'table' then
      local raw
      if key.k == 'const' and key.v == nil then ctx:need(key) raw = NIL else raw = ctx:rawget(t, ctx:key(key, t)) end
      if not (raw.k == 'const' and raw.v == nil) then
         if t.real then ctx:present(raw) end -- were it absent, the metatable would be asked
         return raw
      end
      local mt = ctx:metatable(t)
      if not mt then return raw end
      local h = ctx:rawget(mt, '__index')
      if ctx:isNil(h) then return raw end
      local loaded = h.k == 'func' and autoload(ctx, t, key)
      if loaded then return loaded end
      ctx:need(raw)
      if h.k == 'func' then return ctx:call(h, {t, key, n = 2})[1] or NIL end
      return M.index(ctx, h, key)
   elseif k == 'tensor' or k == 'udata' then
      if isMethodKey(key) then return method(ctx, t, key) end
      return ctx:elementGet(t, key)
   elseif k == 'const' and type(t.v) == 'string' then
      ctx:needType(t)
      return M.index(ctx, ctx:constant(string, 'string'), key)
   elseif k == 'const' and type(t.v) == 'cdata' then
      return ctx:elementGet(t, key)
   end
   M.operandError(ctx, 'index', t)
end

--- t[key] = v
function M.newindex(ctx, t, key, v)
   local k = t.k
   if k == 'table' then
      local mt = ctx:metatable(t)
      local h = mt and ctx:rawget(mt, '__newindex')
      if h and not ctx:isNil(h) then
         local raw = ctx:rawget(t, ctx:key(key, t))
         if ctx:isNil(raw) then
            if h.k == 'func' then ctx:call(h, {t, key, v, n = 3}) return end
            return M.newindex(ctx, h, key, v)
         end
      end
      if ctx:blindWrite(t, key, v) then return end
      return ctx:rawset(t, ctx:key(key, t), v)
   elseif k == 'tensor' or k == 'udata' then
      return ctx:elementSet(t, key, v)
   end
   M.operandError(ctx, 'index', t)
end

return M
