-- Live slots: which slots an instruction reads and writes, and which are read behind it (prototype -> sets of slots).

jit.off(true, true) -- each path is evaluated once: traces would not pay, and would push out the program's

local M = {}

-- Slots that an instruction reads and writes: operand letters, or a function(read, write, instruction, prototype).
local shape = {
   ISTYPE = 'a>', ISNUM = 'a>',
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
function M.effects(p, i)
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

M.ends = {RET = true, RETM = true, RET0 = true, RET1 = true, CALLT = true, CALLMT = true}
local jumps = {JMP = true, UCLO = true, ISNEXT = true}
local forks = {FORI = true, FORL = true, ITERL = true}

function M.successors(i, pc)
   if M.ends[i.op] then return end
   if jumps[i.op] then return i.target end
   if i.op:find '^IS' and i.op ~= 'ISTYPE' and i.op ~= 'ISNUM' then return pc + 1, pc + 2 end
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
function M.before(p)
   if p.live ~= nil then return p.live or nil end
   local at, def = {}, {}
   for pc, i in ipairs(p.code) do
      local reads, writes = M.effects(p, i)
      if not reads then p.live = false return end
      at[pc], def[pc] = {}, {}
      for _, s in ipairs(reads) do at[pc][s] = true end
      for _, s in ipairs(writes) do def[pc][s] = true end
   end
   local changed = true
   while changed do
      changed = false
      for pc = #p.code, 1, -1 do
         local a, b = M.successors(p.code[pc], pc)
         if a and join(at[pc], at[a], def[pc]) then changed = true end
         if b and join(at[pc], at[b], def[pc]) then changed = true end
      end
   end
   p.live = at
   return at
end

M.shape = shape
return M
