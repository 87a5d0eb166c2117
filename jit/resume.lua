-- Resume: what a graph break leaves to run (prototype, instruction -> a step, which runs the breaking instruction in the real VM, and
-- resume functions, which go on behind it). Both are the dumped prototype with a jump in front and the live slots as parameters.

local bytecode = require 'relume.jit.bytecode'

local M = {}

-- Live slots -------------------------------------------------------------------------------------------------------------------

-- Slots that an instruction reads and writes: operand letters, or a function(read, write, instruction, prototype).
local shape = {
   MOV = 'd>a', NOT = 'd>a', UNM = 'd>a', LEN = 'd>a', POW = 'bc>a', KSTR = '>a', KCDATA = '>a', KSHORT = '>a', KNUM = '>a', KPRI = '>a',
   UGET = '>a', USETV = 'd>', USETS = '>', USETN = '>', USETP = '>', TNEW = '>a', TDUP = '>a', GGET = '>a', GSET = 'a>',
   TGETV = 'bc>a', TGETR = 'bc>a', TGETS = 'b>a', TGETB = 'b>a', TSETV = 'abc>', TSETR = 'abc>', TSETS = 'ab>', TSETB = 'ab>',
   ISLT = 'ad>', ISGE = 'ad>', ISLE = 'ad>', ISGT = 'ad>', ISEQV = 'ad>', ISNEV = 'ad>', ISEQS = 'a>', ISNES = 'a>', ISEQN = 'a>',
   ISNEN = 'a>', ISEQP = 'a>', ISNEP = 'a>', ISTC = 'd>', ISFC = 'd>', IST = 'd>', ISF = 'd>', UCLO = '>', LOOP = '>', JMP = '>',
   RET0 = '>', RET1 = 'a>',
}
for _, op in ipairs {'ADD', 'SUB', 'MUL', 'DIV', 'MOD'} do
   shape[op .. 'VN'], shape[op .. 'NV'], shape[op .. 'VV'] = 'b>a', 'b>a', 'bc>a'
end

local function range(f, from, to)
   for s = from, to do f(s) end
end

local function callArguments(read, i, p, n)
   read(i.a)
   range(read, i.a + 1 + p.fr2, i.a + p.fr2 + n)
end

local special = {
   KNIL = function(_, write, i) range(write, i.a, i.d) end,
   CAT = function(read, write, i) range(read, i.b, i.c) write(i.a) end,
   FNEW = function(read, write, i, p)
      local child = p.kgc[i.d].proto
      for u = 0, child.nuv - 1 do
         if child.uv[u] >= 32768 then read(child.uv[u] % 256) end
      end
      write(i.a)
   end,
   TSETM = function(read, _, i) read(i.a - 1) end,
   CALL = function(read, write, i, p) callArguments(read, i, p, i.c - 1) range(write, i.a, i.a + i.b - 2) end,
   CALLM = function(read, write, i, p) callArguments(read, i, p, i.c) range(write, i.a, i.a + i.b - 2) end,
   CALLT = function(read, _, i, p) callArguments(read, i, p, i.d - 1) end,
   CALLMT = function(read, _, i, p) callArguments(read, i, p, i.d) end,
   ITERC = function(read, write, i) range(read, i.a - 3, i.a - 1) range(write, i.a, i.a + i.b - 2) end,
   ITERL = function(read, _, i) read(i.a) end,
   ISNEXT = function(read, _, i) range(read, i.a - 3, i.a - 1) end,
   VARG = function(_, write, i) range(write, i.a, i.a + i.b - 2) end,
   RETM = function(read, _, i) range(read, i.a, i.a + i.d - 1) end,
   RET = function(read, _, i) range(read, i.a, i.a + i.d - 2) end,
   FORI = function(read, _, i) range(read, i.a, i.a + 2) end,
   FORL = function(read, _, i) range(read, i.a, i.a + 2) end,
}
special.ITERN = special.ITERC

-- Lists of the slots that an instruction reads and writes; nil when it is not known.
local function effects(p, i)
   local reads, writes = {}, {}
   local function read(s) reads[#reads + 1] = s end
   local function write(s) writes[#writes + 1] = s end
   local f, letters = special[i.op], shape[i.op]
   if f then f(read, write, i, p)
   elseif letters then
      local inputs, output = letters:match '^(%a*)>(%a*)$'
      for letter in inputs:gmatch '%a' do read(i[letter]) end
      if output ~= '' then write(i[output]) end
   else
      return
   end
   return reads, writes
end

local ends = {RET = true, RETM = true, RET0 = true, RET1 = true, CALLT = true, CALLMT = true}
local jumps = {JMP = true, UCLO = true, ISNEXT = true}
local forks = {FORI = true, FORL = true, ITERL = true}

local function successors(i, pc)
   if ends[i.op] then return end
   if jumps[i.op] then return i.target end
   if i.op:find '^IS' then return pc + 1, pc + 2 end
   if forks[i.op] then return pc + 1, i.target end
   return pc + 1
end

local function join(into, from, without)
   local changed = false
   for s in pairs(from or {}) do
      if not into[s] and not (without and without[s]) then
         into[s] = true
         changed = true
      end
   end
   return changed
end

--- Sets of the slots that are read later, before instruction pc; nil when some instruction is not known.
function M.live(p)
   if p.live ~= nil then return p.live or nil end
   local at, def = {}, {}
   for pc, i in ipairs(p.code) do
      local reads, writes = effects(p, i)
      if not reads then p.live = false return end
      at[pc], def[pc] = {}, {}
      for _, s in ipairs(reads) do at[pc][s] = true end
      for _, s in ipairs(writes) do def[pc][s] = true end
   end
   local changed = true
   while changed do
      changed = false
      for pc = #p.code, 1, -1 do
         local a, b = successors(p.code[pc], pc)
         if a and join(at[pc], at[a], def[pc]) then changed = true end
         if b and join(at[pc], at[b], def[pc]) then changed = true end
      end
   end
   p.live = at
   return at
end

-- Code -------------------------------------------------------------------------------------------------------------------------

-- Loops over pairs keep a hidden index in LuaJIT; a loop that is entered in the middle has none.
local function plain(i, params)
   if i.op == 'ISNEXT' then return bytecode.word('JMP', i.a, i.d) end
   if i.op == 'ITERN' then return bytecode.word3('ITERC', i.a, i.b, i.c) end
   if i.op == 'VARG' then return bytecode.word3('VARG', i.a, i.b, params) end
   return i.word
end

-- Words and lines of the code behind n instructions in front, all of the line of pc; params: number of parameters from now on.
local function shifted(p, pc, n, params)
   local words, lines = {}, {}
   local line = p.lines and p.lines[pc] or p.firstline or 0
   for k = 1, n do lines[k] = line end
   for k, i in ipairs(p.code) do words[n + k], lines[n + k] = plain(i, params), p.lines and p.lines[k] or 0 end
   return words, lines, line
end

local function load(f, p, raw)
   local fn = assert(loadstring(bytecode.dump(p, raw)))
   setfenv(fn, getfenv(f))
   for i = 1, p.nuv do debug.upvaluejoin(fn, i, f, i) end
   return fn
end

local function highest(slots)
   local n = -1
   for s in pairs(slots) do n = math.max(n, s) end
   return n
end

local origins = setmetatable({}, {__mode = 'kv'}) -- resume function -> {f, prototype} that it is the rest of

--- The rest of f from instruction pc on: a function of slots 0 .. n - 1, n, the live slots, and what the caller has to keep with it.
function M.rest(f, p, pc)
   local live = M.live(p)[pc]
   local n = highest(live) + 1
   local words, lines = shifted(p, pc, 1, n)
   words[1] = bytecode.jump(math.max(n, 1), 1, pc + 1)
   local fn = load(f, p, bytecode.rewrite(p, words, lines, 1, n, p.vararg))
   local origin = {f = f, p = p}
   origins[fn] = origin
   return fn, n, live, origin
end

local multi = {CALLM = 'c', CALLMT = 'd', RETM = 'd', TSETM = 'd'}

-- Slot at which the pending results of the instruction before are.
local function pendingAt(p, i)
   if i.op == 'CALLM' then return i.a + 1 + p.fr2 + i.c elseif i.op == 'CALLMT' then return i.a + 1 + p.fr2 + i.d end
   return i.op == 'RETM' and i.a + i.d or i.a
end

-- What instruction i leaves: {base, n} results in slots; nil when it cannot be run alone.
local function leaves(i)
   local op = i.op
   if op == 'CALL' or op == 'CALLM' or op == 'ITERC' or op == 'ITERN' then return i.a, i.b - 1 end
   if op == 'FORI' then return i.a, 4 end
   if op:find '^TSET' or op == 'GSET' or op:find '^IS' then return 0, 0 end
   local letters = shape[op]
   if letters and letters:find '>a$' or op == 'CAT' then return i.a, 1 end
end

--- Runs instruction pc of f in the real VM: {fn, params (slots given), pending (give the pending results behind them), kind, base, n, next, other}.
-- kind: 'value' (n results for slots base ..., goes on at next), 'branch' (true: goes on at next, else at other), 'last' (its results are f's).
function M.step(f, p, pc)
   local i, at = p.code[pc], pc
   local s = {pending = multi[i.op] ~= nil}
   local last = i
   while (last.op == 'CALL' or last.op == 'CALLM') and last.b == 0 do -- the next instruction takes all the results
      at = at + 1
      last = p.code[at]
   end
   local read = {}
   for k = pc, at do
      local reads = effects(p, p.code[k])
      if not reads then return end
      for _, slot in ipairs(reads) do read[slot] = true end
   end
   if at > pc then
      for slot in pairs(read) do
         if slot >= i.a and not M.live(p)[pc][slot] then read[slot] = nil end
      end
   end
   s.read, s.params = read, highest(read) + 1
   if s.pending then s.params = math.max(s.params, pendingAt(p, i)) end
   local front = s.pending and 2 or 1
   local words, lines, line = shifted(p, pc, front, s.params)
   if s.pending then words[1] = bytecode.word3('VARG', pendingAt(p, i), 0, s.params) end
   words[front] = bytecode.jump(math.max(s.params, 1), front, front + pc)
   local function put(k, word)
      words[k], lines[k] = word, lines[k] or line
   end
   local stop = #words
   if ends[last.op] then
      s.kind = 'last'
   elseif last.op:find '^IS' and last.op ~= 'ISNEXT' then
      s.kind, s.next, s.other = 'branch', p.code[at + 1].target, at + 2
      put(stop + 1, bytecode.word('KPRI', 0, 2))
      put(stop + 2, bytecode.word('RET1', 0, 2))
      put(stop + 3, bytecode.word('RET0', 0, 1))
      put(front + at + 1, bytecode.jump(0, front + at + 1, stop + 1))
      put(front + at + 2, bytecode.word('RET0', 0, 1))
   else
      s.base, s.n = leaves(last)
      if not s.n or s.n < 0 or s.n > 10 then return end
      s.kind, s.next = 'value', at + 1
      put(front + at + 1, s.n == 0 and bytecode.word('RET0', 0, 1) or bytecode.word('RET', s.base, s.n + 1))
      if last.op == 'FORI' then
         s.loop, s.other = true, last.target
         put(stop + 1, bytecode.word('RET0', 0, 1))
         put(front + at, bytecode.jump(last.a, front + at, stop + 1, 'FORI'))
      end
   end
   s.fn = load(f, p, bytecode.rewrite(p, words, lines, front, s.params, s.pending))
   return s
end

-- Exits ------------------------------------------------------------------------------------------------------------------------

-- Function, prototype and instruction of a frame; those of the original when it runs a resume function.
local function original(f)
   local o = origins[f.fn.real]
   if o then return o.f, o.p, f.pc - 1 end
   return f.fn.real, f.proto, f.pc
end

-- True when the frame's function is always this one.
local function fixed(ctx, state, fn)
   return fn.real and (fn.real == state.f or fn.src and fn.src.kind == 'const')
end

--- Where capture has to stop for a break: {at = outermost instruction, counted, rest = true to run all behind it eagerly}, or nil.
function M.place(ctx, state)
   local f, at = ctx.frames[1], ctx.outer - 1
   local inner = #ctx.frames > 1
   if not f then return end
   local _, proto = original(f)
   if not M.live(proto) then return end
   local rest
   for _, c in pairs(f.open) do
      if not c.immutable then at, rest, inner = math.min(at, c.at), true, false end
   end
   if not fixed(ctx, state, f.fn) then
      if not f.tailAt or ctx.tails > 1 then return end
      if rest and at < f.tailAt then return end
      at, rest, inner = f.tailAt, nil, false
   end
   return {at = at, rest = rest, inner = inner}
end

-- A Lua function that the breaking call enters is compiled by itself.
local function callee(ctx, state, f, i)
   if not i.op:find '^CALL' then return end
   local v = f.slots[i.a]
   if v.k ~= 'func' or not v.real or v.byproto or not bytecode.id(v.real) then return end
   ctx:needFunc(v)
   return i.a, state:child(v.real)
end

--- How the captured part is left, with the outermost frame in front of the instruction at which capture stopped; nil when it cannot be.
function M.exit(ctx, state, place)
   local f = ctx.frames[1]
   local real, p, pc = original(f)
   local e = {frame = f, home = f.fn.real == state.f}
   if place.rest then
      e.kind, e.next = 'rest', state:rest(real, p, pc, true)
      return e
   end
   local s = state:step(real, p, pc)
   if not s or s.params > 100 then return end
   e.kind, e.step = s.kind, s
   if place.inner then e.calleeSlot, e.callee = callee(ctx, state, f, p.code[pc]) end
   if s.next then e.next = state:rest(real, p, s.next) end
   if s.other then e.other = state:rest(real, p, s.other) end
   return e
end

return M
