-- Resume: what a graph break leaves to run (prototype, instruction -> a step, which runs the breaking instruction in the real VM, and
-- resume functions, which go on behind it). Both are the dumped prototype with a jump in front and the live slots as parameters.

local bytecode = require 'relume.jit.bytecode'
local live = require 'relume.jit.live'
local box = require 'relume.jit.box'

local M = {}

-- Loops over pairs keep a hidden index in LuaJIT; a loop that is entered in the middle has none.
local function plain(i, params)
   if i.op == 'ISNEXT' then return bytecode.word('JMP', i.a, i.d) end
   if i.op == 'ITERN' then return bytecode.word3('ITERC', i.a, i.b, i.c) end
   if i.op == 'VARG' then return bytecode.word3('VARG', i.a, i.b, params) end
   return i.word
end

local function lineOf(p, pc) return p.lines and p.lines[pc] or p.firstline or 0 end

-- Words and lines of the code behind n instructions in front, all of the line of pc; params: number of parameters from now on.
local function shifted(p, pc, n, params)
   local words, lines = {}, {}
   local line = lineOf(p, pc)
   for k = 1, n do lines[k] = line end
   for k, i in ipairs(p.code) do words[n + k], lines[n + k] = plain(i, params), p.lines and p.lines[k] or 0 end
   return words, lines, line
end

-- A function with the bytes of a prototype, the upvalues and the environment of f.
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

local multi = {CALLM = 'c', CALLMT = 'd', RETM = 'd', TSETM = 'd'}
M.takesPending = multi

-- Slot at which the pending results of the instruction before are.
local function pendingAt(p, i)
   if i.op == 'CALLM' then return i.a + 1 + p.fr2 + i.c elseif i.op == 'CALLMT' then return i.a + 1 + p.fr2 + i.d end
   return i.op == 'RETM' and i.a + i.d or i.a
end

-- Resume functions ---------------------------------------------------------------------------------------------------------------

local origins = setmetatable({}, {__mode = 'kv'}) -- prototype of a resume function -> {f, p, front, at, slots}: what it is the rest of

--- Where a resume function's prototype comes from, nil for a prototype of the program.
function M.origin(p) return origins[p] end

--- Instruction of the program that instruction pc of a resume function comes from, and the sorted slots that hold cells there, if any.
function M.home(origin, pc)
   if not origin.at then return pc - origin.front end
   local at = origin.at[pc - origin.front]
   if at.k > 0 then return at.pc, {unpack(origin.slots, 1, at.k)} end
   return at.pc
end

-- Words, lines, place to begin and frame size of the code behind n instructions in front.
local function codeFrom(p, pc, n, params, boxed)
   if not boxed then
      local words, lines = shifted(p, pc, n, params)
      return {words = words, lines = lines, start = n + pc}
   end
   local code = box.code(p, pc, boxed, n, function(i) return plain(i, params) end)
   if not code then return end
   for k = 1, n do
      table.insert(code.words, k, 0)
      table.insert(code.lines, k, lineOf(p, pc))
   end
   return code
end

--- The rest of prototype p from instruction pc on: {make, proto, n, live, origin}. make(f) is a function of slots 0 .. n - 1 (then of the
-- variable arguments, or of the results that instruction pc takes when they are pending), with the upvalues of f. Who uses it keeps origin.
-- boxed: sorted slots that get cells. nil when it cannot be written.
function M.rest(p, pc, pending, boxed)
   local alive = {}
   for s in pairs(live.before(p)[pc]) do alive[s] = true end
   for _, s in ipairs(boxed or {}) do alive[s] = true end -- also those that are only written: the closures see it
   local n, front = highest(alive) + 1, pending and 2 or 1
   local code = codeFrom(p, pc, front, n, boxed)
   if not code then return end
   if pending then code.words[1] = bytecode.word3('VARG', pendingAt(p, p.code[pc]), 0, n) end
   code.words[front] = bytecode.jump(math.max(n, 1), front, code.start)
   local raw = bytecode.rewrite(p, code.words, code.lines, front, n, p.vararg or pending, code.frame)
   local function make(f) return load(f, p, raw) end
   local parsed = bytecode.parse(bytecode.dump(p, raw))
   for k, child in pairs(p.kgc) do -- closures made in it are those of the program
      if type(child) == 'table' and child.kind == 'proto' then parsed.kgc[k] = child end
   end
   local origin = {p = p, front = front, at = code.at, slots = boxed}
   origins[parsed] = origin
   return {make = make, proto = parsed, n = n, live = alive, origin = origin, pending = pending, boxed = boxed}
end

-- Steps --------------------------------------------------------------------------------------------------------------------------

-- What instruction i leaves: {base, n} results in slots; nil when it cannot be run alone.
local function leaves(i)
   local op = i.op
   if op == 'CALL' or op == 'CALLM' or op == 'ITERC' or op == 'ITERN' then return i.a, i.b - 1 end
   if op == 'FORI' then return i.a, 4 end
   if op:find '^TSET' or op == 'GSET' or op:find '^IS' then return 0, 0 end
   local letters = live.shape[op]
   if letters and letters:find '>a$' or op == 'CAT' then return i.a, 1 end
end

-- Slots that instructions pc .. last read and that hold values before pc.
local function reads(p, pc, last)
   local read, first = {}, p.code[pc]
   for k = pc, last do
      local list = live.effects(p, p.code[k])
      if not list then return end
      for _, slot in ipairs(list) do read[slot] = true end
   end
   if last > pc then
      for slot in pairs(read) do
         if slot >= first.a and not live.before(p)[pc][slot] then read[slot] = nil end
      end
   end
   return read
end

-- Ends of a step: the code behind the instructions that run.
local function finish(s, p, front, at, words, lines, line)
   local last, stop = p.code[at], #words
   local function put(k, word)
      words[k], lines[k] = word, lines[k] or line
   end
   if live.ends[last.op] then
      s.kind = 'last'
   elseif last.op:find '^IS' and last.op ~= 'ISNEXT' then
      s.kind, s.next, s.other = 'branch', p.code[at + 1].target, at + 2
      if last.op == 'ISTC' or last.op == 'ISFC' then s.copy = {to = last.a, from = last.d} end
      put(stop + 1, bytecode.word('KPRI', 0, 2))
      put(stop + 2, bytecode.word('RET1', 0, 2))
      put(stop + 3, bytecode.word('RET0', 0, 1))
      put(front + at + 1, bytecode.jump(0, front + at + 1, stop + 1))
      put(front + at + 2, bytecode.word('RET0', 0, 1))
   else
      s.base, s.n = leaves(last)
      if not s.n or s.n < 0 or s.n > 20 then return end
      s.kind, s.next = 'value', at + 1
      put(front + at + 1, s.n == 0 and bytecode.word('RET0', 0, 1) or bytecode.word('RET', s.base, s.n + 1))
      if last.op == 'FORI' then
         s.loop, s.other = true, last.target
         put(stop + 1, bytecode.word('RET0', 0, 1))
         put(front + at, bytecode.jump(last.a, front + at, stop + 1, 'FORI'))
      end
   end
   return s
end

--- Runs instruction pc of f in the real VM: {fn, params (slots given), pending (give the pending results behind them), kind, base, n, next, other}.
-- kind: 'value' (n results for slots base ..., goes on at next), 'branch' (true: goes on at next, else at other), 'last' (its results are f's).
-- It reads no upvalues; env: its environment.
function M.step(p, pc, env)
   local i, at = p.code[pc], pc
   local s = {pending = multi[i.op] ~= nil}
   while (p.code[at].op == 'CALL' or p.code[at].op == 'CALLM') and p.code[at].b == 0 do -- the next instruction takes all the results
      at = at + 1
   end
   s.read = reads(p, pc, at)
   if not s.read then return end
   s.params = highest(s.read) + 1
   if s.pending then s.params = math.max(s.params, pendingAt(p, i)) end
   if s.params > 100 then return end
   local front = s.pending and 2 or 1
   local words, lines, line = shifted(p, pc, front, s.params)
   if s.pending then words[1] = bytecode.word3('VARG', pendingAt(p, i), 0, s.params) end
   words[front] = bytecode.jump(math.max(s.params, 1), front, front + pc)
   if not finish(s, p, front, at, words, lines, line) then return end
   s.fn = setfenv(assert(loadstring(bytecode.dump(p, bytecode.rewrite(p, words, lines, front, s.params, s.pending)))), env)
   return s
end

return M
