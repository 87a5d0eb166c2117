-- Boxes: code in which some slots hold cells (prototype, instruction, slots -> words). A variable that closures change cannot be handed to a
-- resume function by value, so its slot gets a cell: a function that reads and writes the shared variable (runtime.newCell).
--
--   cell()                -> the value
--   cell(true, v)         sets it
--   cell(false, f, i)     makes it upvalue i of f
--
-- The code is written once for each set of slots that are boxed at the same time: UCLO ends variables, from the top slot down, and goes on in
-- the copy in which those slots are plain again. Reads are loaded into slots above the frame, writes are stored from there.

jit.off(true, true) -- each path is evaluated once: traces would not pay, and would push out the program's

local bytecode = require 'relume.jit.bytecode'
local live = require 'relume.jit.live'

local M = {}
local word, word3 = bytecode.word, bytecode.word3
local ROOM = 6 -- slots of one call of a cell

local Writer = {}
Writer.__index = Writer

function Writer:put(w, target)
   local n = #self.words + 1
   self.words[n], self.lines[n], self.at[n] = w, self.line, self.now
   if target then self.fixes[#self.fixes + 1] = {n = n, op = w.op, a = w.a, copy = target.copy, pc = target.pc, to = target.to} end
   return n
end

-- A jump; copy and pc say where to, or field to of the table that is returned, set later.
function Writer:jump(op, a, copy, pc)
   local target = {copy = copy, pc = pc}
   self:put({op = op, a = a}, target)
   return self.fixes[#self.fixes]
end

function Writer:temp(j) return self.frame + j * ROOM end

function Writer:call(base, slot, results, ...)
   self:put(word('MOV', base, slot))
   local args = {...}
   for k, w in ipairs(args) do self:put(w(base + k + self.fr2)) end
   self:put(word3('CALL', base, results + 1, #args + 1))
end

local function pri(v) return function(s) return word('KPRI', s, v) end end
local function mov(from) return function(s) return word('MOV', s, from) end end
local function short(v) return function(s) return word('KSHORT', s, v) end end

-- Loads a boxed slot -> the slot that holds its value.
function Writer:get(j, slot)
   self:call(self:temp(j), slot, 1)
   return self:temp(j)
end

function Writer:set(slot, from) self:call(self:temp(4), slot, 0, pri(2), mov(from)) end

-- Instructions -------------------------------------------------------------------------------------------------------------------

local function touches(boxed, from, to)
   for s = from, to do
      if boxed[s] then return true end
   end
end

local expand = {}

function expand.KNIL(w, i, boxed)
   for s = i.a, i.d do
      if boxed[s] then
         w:put(word('KPRI', w:temp(3), 0))
         w:set(s, w:temp(3))
      else
         w:put(word('KPRI', s, 0))
      end
   end
end

function expand.FNEW(w, i, boxed, p)
   local to, child = boxed[i.a] and w:temp(3) or i.a, p.kgc[i.d].proto
   w:put(word('FNEW', to, i.d))
   for u = 0, child.nuv - 1 do
      local d = child.uv[u]
      if d >= 32768 and boxed[d % 256] then w:call(w:temp(4), d % 256, 0, pri(1), mov(to), short(u + 1)) end
   end
   if boxed[i.a] then w:set(i.a, to) end
end

-- Copies when the test holds: the copy is a write of its own.
local function testCopy(op)
   return function(w, i, boxed, p, copy, pc)
      local from = boxed[i.d] and w:get(0, i.d) or i.d
      if not boxed[i.a] then
         w:put(word(op .. 'C', i.a, from))
         return
      end
      w:put(word(op, 0, from))
      local set = w:jump('JMP', i.a)
      w:jump('JMP', i.a, copy, pc + 2)
      set.to = #w.words + 1
      w:set(i.a, from)
      w:jump('JMP', i.a, copy, p.code[pc + 1].target)
   end
end
expand.ISTC, expand.ISFC = testCopy 'IST', testCopy 'ISF'

-- An instruction with operands in slots.
local function operands(w, i, boxed, letters, copy)
   local inputs, output = letters:match '^(%a*)>(%a*)$'
   local op = {a = i.a, b = i.b, c = i.c, d = i.d}
   local n = 0
   for letter in inputs:gmatch '%a' do
      if boxed[op[letter]] then
         op[letter] = w:get(n, op[letter])
         n = n + 1
      end
   end
   local to = output ~= '' and boxed[i.a] and i.a
   if to then op.a = w:temp(3) end
   if i.target then w:jump(i.op, op.a, copy, i.target)
   elseif i.b then w:put(word3(i.op, op.a, op.b, op.c))
   else w:put(word(i.op, op.a, op.d)) end
   if to then w:set(to, op.a) end
end

-- Variables end: those that are still read become plain.
function expand.UCLO(w, i, boxed, p, copy)
   local alive, behind = live.before(p)[i.target], copy
   for k = copy, 1, -1 do
      local s = w.slots[k]
      if s < i.a then break end
      if alive[s] then w:put(word('MOV', s, w:get(0, s))) end
      behind = k - 1
   end
   w:jump('UCLO', i.a, behind, i.target)
end

-- Other instructions must not touch boxed slots: variables are below what they work on, or are written before they can be boxed.
local function untouched(p, i, boxed)
   local reads, writes = live.effects(p, i)
   for _, s in ipairs(reads) do if boxed[s] then return false end end
   for _, s in ipairs(writes) do if boxed[s] then return false end end
   return not (i.op:find '^FOR' and touches(boxed, i.a, i.a + 3))
end

-- Copies -------------------------------------------------------------------------------------------------------------------------

-- Which copy instruction i of copy k goes on in, and the slots boxed in copy k.
local function copyBehind(slots, k, i)
   if i.op ~= 'UCLO' then return k end
   while k > 0 and slots[k] >= i.a do k = k - 1 end
   return k
end

local function boxedIn(slots, k)
   local set = {}
   for n = 1, k do set[slots[n]] = true end
   return set
end

-- Instructions that can run: reach[k][pc].
local function reachable(p, slots, pc)
   local reach, work = {}, {{#slots, pc}}
   for k = 0, #slots do reach[k] = {} end
   while #work > 0 do
      local k, at = unpack(table.remove(work))
      if not reach[k][at] then
         reach[k][at] = true
         local i = p.code[at]
         local behind, a, b = copyBehind(slots, k, i), live.successors(i, at)
         if a then work[#work + 1] = {behind, a} end
         if b then work[#work + 1] = {behind, b} end
      end
   end
   return reach
end

local function writeCopy(w, p, slots, k, reach, plain)
   local boxed = boxedIn(slots, k)
   for pc, i in ipairs(p.code) do
      w.starts[k][pc], w.now, w.line = #w.words + 1, {pc = pc, k = k}, p.lines and p.lines[pc] or 0
      local f, letters = expand[i.op], live.shape[i.op]
      if not reach[k][pc] then
         w:put(word('RET0', 0, 1))
      elseif k > 0 and f then
         f(w, i, boxed, p, k, pc)
      elseif k > 0 and letters then
         operands(w, i, boxed, letters, k)
      elseif k > 0 and not untouched(p, i, boxed) then
         return false
      elseif i.target then
         w:jump(i.op == 'ISNEXT' and 'JMP' or i.op, i.a, k, i.target)
      else
         w:put(plain(i))
      end
   end
   return true
end

--- Code that goes on at instruction pc with cells in slots (sorted): {words, lines, at (where each comes from: {pc, k}), start (the instruction
-- to begin at), frame (slots needed)}, or nil when it cannot be written. front: instructions that will be put in front; plain(i): word of an
-- instruction that stays as it is.
function M.code(p, pc, slots, front, plain)
   local w = setmetatable({words = {}, lines = {}, at = {}, fixes = {}, starts = {}, frame = p.framesize, fr2 = p.fr2, slots = slots}, Writer)
   local reach = reachable(p, slots, pc)
   for k = #slots, 0, -1 do
      w.starts[k] = {}
      if not writeCopy(w, p, slots, k, reach, plain) then return end
   end
   w.frame = p.framesize + 5 * ROOM
   if w.frame > 240 or #w.words > 30000 then return end
   for _, fix in ipairs(w.fixes) do
      local to = fix.to or w.starts[fix.copy][fix.pc]
      w.words[fix.n] = bytecode.jump(fix.a, fix.n, to, fix.op)
   end
   return {words = w.words, lines = w.lines, at = w.at, start = w.starts[#slots][pc] + front, frame = w.frame}
end

return M
