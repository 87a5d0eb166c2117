-- Bytecode: what string.dump writes, parsed (Lua function -> prototype with named instructions, constants, debug names).
-- The dump is never patched, also when LuaJIT has compiled the function's loops. Opcodes are named through jit.vmdef.

jit.off(true, true) -- each path is evaluated once: traces would not pay, and would push out the program's

local bit = require 'bit'
-- LuaJIT's own table of opcodes; the copy from build time serves where LUA_PATH leaves LuaJIT's folder out, as `luarocks path` does.
local found, vmdef = pcall(require, 'jit.vmdef')
if not found then vmdef = require 'relume.vmdef' end
local jutil = require 'jit.util'
local band, rshift = bit.band, bit.rshift
local byte, sub = string.byte, string.sub

local M = {}

local names = {}
for i = 0, #vmdef.bcnames / 6 - 1 do names[i] = sub(vmdef.bcnames, i * 6 + 1, i * 6 + 6):gsub('%s+$', '') end
M.names = names

-- Instructions that no dump holds: headers of functions, and what LuaJIT writes over loops that it compiled or gave up on. The dump has the
-- plain forms. Every other instruction of this LuaJIT has a handler in eval.lua; one that is not known by name breaks the graph.
M.never = {}
for op in ('FUNCF IFUNCF JFUNCF FUNCV IFUNCV JFUNCV FUNCC FUNCCW JFORI IFORL JFORL IITERL JITERL IITERN JITERN ILOOP JLOOP'):gmatch '%S+' do
   M.never[op] = true
end

-- Operands: A is bits 8-15; an instruction with three operands has C in 16-23 and B in 24-31, with two D in 16-31.
local THREE = {}
for op in ('ADDVN SUBVN MULVN DIVVN MODVN ADDNV SUBNV MULNV DIVNV MODNV ADDVV SUBVV MULVV DIVVV MODVV POW CAT TGETV TGETS TGETB TGETR '
   .. 'TSETV TSETS TSETB TSETR CALLM CALL ITERC ITERN VARG'):gmatch '%S+' do THREE[op] = true end
local JUMP = {}
for op in ('UCLO ISNEXT FORI JFORI FORL IFORL JFORL ITERL IITERL JITERL LOOP ILOOP JLOOP JMP'):gmatch '%S+' do JUMP[op] = true end
M.THREE, M.JUMP = THREE, JUMP

-- Reader over the dump ---------------------------------------------------------------------------------------------------------

local Reader = {}
Reader.__index = Reader

function Reader:u8()
   local b = byte(self.s, self.p)
   self.p = self.p + 1
   return b
end

function Reader:u16() return self:u8() + self:u8() * 256 end

function Reader:u32() return self:u16() + self:u16() * 65536 end

function Reader:uleb()
   local v, scale = 0, 1
   while true do
      local b = self:u8()
      v = v + band(b, 127) * scale
      if b < 128 then return v end
      scale = scale * 128
   end
end

function Reader:str(n)
   local s = sub(self.s, self.p, self.p + n - 1)
   self.p = self.p + n
   return s
end

function Reader:zstr()
   local e = self.s:find('\0', self.p, true)
   local s = sub(self.s, self.p, e - 1)
   self.p = e + 1
   return s
end

-- Double from its two halves.
local ffi = require 'ffi'
local words, number = ffi.new 'uint32_t[2]', ffi.new 'double[1]'
local function double(lo, hi)
   if ffi.abi 'le' then words[0], words[1] = lo, hi else words[1], words[0] = lo, hi end
   ffi.copy(number, words, 8)
   return number[0]
end

local function int32(v) return v >= 2147483648 and v - 4294967296 or v end

-- Number constant: 33 bits, of which the lowest tells doubles from integers.
function Reader:knum()
   local b0 = self:u8()
   local isnum, v, scale = band(b0, 1) == 1, band(rshift(b0, 1), 63), 64
   while b0 >= 128 do
      b0 = self:u8()
      v = v + band(b0, 127) * scale
      scale = scale * 128
   end
   if isnum then return double(v, self:uleb()) end
   return int32(v)
end

-- Entry of a table template.
function Reader:ktabk()
   local t = self:uleb()
   if t >= 5 then return self:str(t - 5) end
   if t == 0 then return nil elseif t == 1 then return false elseif t == 2 then return true
   elseif t == 3 then return int32(self:uleb()) end
   local lo = self:uleb()
   return double(lo, self:uleb())
end

-- Table template: {narray, array with index 0, list of pairs}.
function Reader:ktab()
   local narray, nhash = self:uleb(), self:uleb()
   local k = {kind = 'table', narray = narray, nhash = nhash, array = {}, hash = {}}
   for i = 0, narray - 1 do k.array[i] = self:ktabk() end
   for i = 1, nhash do
      local key = self:ktabk()
      k.hash[i] = {key, self:ktabk()}
   end
   return k
end

local function cdata(r, t)
   local function word64(ctype)
      local lo = r:uleb()
      local hi = r:uleb()
      return ffi.new(ctype, hi) * 4294967296ULL + ffi.new(ctype, lo)
   end
   if t == 2 then return ffi.cast('int64_t', word64 'uint64_t') elseif t == 3 then return word64 'uint64_t' end
   local re = double(r:uleb(), r:uleb())
   return ffi.new('double complex', re, double(r:uleb(), r:uleb()))
end

-- A constant of the collected kind; child prototypes come off the stack of those read before.
function Reader:kgc(stack)
   local t = self:uleb()
   if t >= 5 then return self:str(t - 5) end
   if t == 0 then return {kind = 'proto', proto = table.remove(stack)} end
   if t == 1 then return self:ktab() end
   return {kind = 'cdata', value = cdata(self, t)}
end

-- Instructions and debug information -------------------------------------------------------------------------------------------

local function decode(word, pc)
   local op = names[band(word, 255)]
   local ins = {op = op, a = band(rshift(word, 8), 255), word = word}
   if THREE[op] then
      ins.c, ins.b = band(rshift(word, 16), 255), band(rshift(word, 24), 255)
   else
      ins.d = band(rshift(word, 16), 65535)
      if JUMP[op] then ins.target = pc + 1 + ins.d - 32768 end
   end
   return ins
end

local VARNAMES = {'(for index)', '(for limit)', '(for step)', '(for generator)', '(for state)', '(for control)'}

function Reader:varinfo(p, stop)
   p.vars = {}
   local lastpc = 0
   while self.p < stop do
      local b = byte(self.s, self.p)
      if b == 0 then self.p = self.p + 1 break end
      local name
      if b < 7 then
         name = VARNAMES[b]
         self.p = self.p + 1
      else
         name = self:zstr()
      end
      local from = lastpc + self:uleb()
      lastpc = from
      p.vars[#p.vars + 1] = {name = name, from = from, to = from + self:uleb()}
   end
end

function Reader:debug(p, nbc, size)
   local stop = self.p + size
   local bytes = p.numline < 256 and 1 or p.numline < 65536 and 2 or 4
   p.lines = {}
   for i = 1, nbc do
      p.lines[i] = p.firstline + (bytes == 1 and self:u8() or bytes == 2 and self:u16() or self:u32())
   end
   p.uvnames = {}
   for i = 1, p.nuv do p.uvnames[i] = self:zstr() end
   self:varinfo(p, stop)
   self.p = stop
end

function Reader:proto(stack, chunk)
   local from = self.p
   local p = {chunk = chunk, flags = self:u8(), params = self:u8(), framesize = self:u8(), nuv = self:u8()}
   local nkgc, nkn, nbc = self:uleb(), self:uleb(), self:uleb()
   local size = 0
   if not self.strip then
      size = self:uleb()
      if size > 0 then p.firstline, p.numline = self:uleb(), self:uleb() end
   end
   p.vararg = band(p.flags, 2) ~= 0
   p.code, p.uv, p.kgc, p.kn = {}, {}, {}, {}
   p.sizes = {nkgc, nkn, size}
   for pc = 1, nbc do p.code[pc] = decode(self:u32(), pc) end
   p.restAt = self.p - from + 1 -- of p.raw: upvalues and constants, then debug information
   for i = 0, p.nuv - 1 do p.uv[i] = self:u16() end
   local kids = {}
   for i = nkgc - 1, 0, -1 do p.kgc[i] = self:kgc(stack) end
   for i = 0, nkn - 1 do p.kn[i] = self:knum() end
   for i = 0, nkgc - 1 do
      if type(p.kgc[i]) == 'table' and p.kgc[i].kind == 'proto' then kids[#kids + 1] = p.kgc[i].proto end
   end
   p.children = kids
   p.debugAt = self.p - from + 1
   if size > 0 then self:debug(p, nbc, size) end
   p.raw = sub(self.s, from, self.p - 1)
   return p
end

--- Parses a dump (a string from string.dump) -> main prototype. Raises when it is no dump of this LuaJIT.
function M.parse(dump)
   assert(sub(dump, 1, 3) == '\27LJ', 'bytecode: not a dump')
   local r = setmetatable({s = dump, p = 5}, Reader)
   local flags = r:uleb()
   r.strip = band(flags, 2) ~= 0
   local fr2 = band(flags, 8) ~= 0
   local chunk = r.strip and '?' or r:str(r:uleb())
   local head = sub(dump, 1, r.p - 1)
   local stack = {}
   while true do
      local n = r:uleb()
      if n == 0 then break end
      local p = r:proto(stack, chunk)
      p.head, p.fr2, p.strip = head, fr2 and 1 or 0, r.strip
      stack[#stack + 1] = p
   end
   return stack[#stack]
end

-- The source line of an instruction, "file.lua:12".
function M.where(p, pc)
   local name = p.chunk:gsub('^[@=]', '')
   if #name > 60 or name:find '\n' then name = '[string]' end
   return ('%s:%s'):format(name, p.lines and p.lines[pc] or p.firstline or '?')
end

-- Name of the local in a slot at an instruction, or nil.
function M.varname(p, pc, slot)
   if not p.vars then return end
   for _, v in ipairs(p.vars) do
      if v.from > pc then return end
      if v.to > pc then
         if slot == 0 then return v.name end
         slot = slot - 1
      end
   end
end

local protos = setmetatable({}, {__mode = 'k'}) -- LuaJIT's prototype object -> parsed

local same = setmetatable({}, {__mode = 'kv'}) -- LuaJIT's prototype object of closures from M.maker -> that of the program's closures

--- LuaJIT's prototype object of a Lua function: equal for all closures of one piece of source; nil for C functions.
function M.id(f)
   local id = jutil.funcinfo(f).proto
   return id and (same[id] or id)
end

--- Parsed prototype of a Lua function (kept), nil for a C function.
function M.of(f)
   local id = jutil.funcinfo(f).proto
   if not id then return end
   local p = protos[id]
   if not p then
      p = M.parse(string.dump(f))
      protos[id] = p
   end
   return p
end

local function uleb(v)
   local out = {}
   repeat
      local b = v % 128
      v = (v - b) / 128
      out[#out + 1] = string.char(v > 0 and b + 128 or b)
   until v == 0
   return table.concat(out)
end

--- A prototype as a dump that loadstring takes; its closures get fresh upvalues. raw: other bytes of the prototype itself (see rewrite).
function M.dump(p, raw)
   local out = {p.head}
   local function add(q)
      for i = 1, #q.children do add(q.children[i]) end
      local bytes = q == p and raw or q.raw
      out[#out + 1] = uleb(#bytes)
      out[#out + 1] = bytes
   end
   add(p)
   out[#out + 1] = '\0'
   return table.concat(out)
end

--- A function that makes closures of a prototype, each with new upvalues. parent, d: the function whose FNEW d makes them in the program, if any.
function M.maker(p, parent, d)
   if p.maker then return p.maker end
   local uv = {}
   for i = 1, p.nuv do uv[i] = string.char(i - 1, 128) end -- slot i - 1 of the maker
   local raw = sub(p.raw, 1, p.restAt - 1) .. table.concat(uv) .. sub(p.raw, p.restAt + 2 * p.nuv)
   local code = {M.word('FNEW', p.nuv, 0), M.jump(0, 2, 3, 'UCLO'), M.word('RET1', p.nuv, 2)}
   for i, w in ipairs(code) do code[i] = M.bytes(w) end
   local maker = string.char(1, p.nuv, p.nuv + 2, 0) .. uleb(1) .. uleb(0) .. uleb(3) .. (p.strip and '' or '\0') .. table.concat(code) .. '\0'
   p.maker = assert(loadstring(sub(M.dump(p, raw), 1, -2) .. uleb(#maker) .. maker .. '\0'))
   local id = parent and jutil.funck(parent, -d - 1)
   if type(id) == 'proto' then same[jutil.funcinfo(p.maker()).proto] = id end
   return p.maker
end

local opcodes = {}
for i, name in pairs(names) do opcodes[name] = i end

--- Word of an instruction with operands a and d.
function M.word(op, a, d) return opcodes[op] + a * 256 + d * 65536 end

--- Word of an instruction with operands a, b and c.
function M.word3(op, a, b, c) return opcodes[op] + a * 256 + c * 65536 + b * 16777216 end

--- Word of a jump from instruction pc to instruction target.
function M.jump(a, pc, target, op) return M.word(op or 'JMP', a, target - pc - 1 + 32768) end

local function u32(w)
   return string.char(w % 256, math.floor(w / 256) % 256, math.floor(w / 65536) % 256, math.floor(w / 16777216) % 256)
end

M.bytes = u32

-- Debug information of rewritten code: lines of the new instructions, names moved by the instructions put in front.
local function debugInfo(p, lines, front)
   local bytes, out = p.numline < 256 and 1 or p.numline < 65536 and 2 or 4, {}
   for i, line in ipairs(lines) do out[i] = sub(u32(line - p.firstline), 1, bytes) end
   for i = 1, p.nuv do out[#out + 1] = p.uvnames[i] .. '\0' end
   local last = 0
   for _, v in ipairs(p.vars) do
      local from = v.from == 0 and 0 or v.from + front
      local name = v.name .. '\0'
      for i, special in ipairs(VARNAMES) do
         if v.name == special then name = string.char(i) end
      end
      out[#out + 1] = name .. uleb(from - last) .. uleb(v.to + front - from)
      last = from
   end
   return table.concat(out) .. '\0'
end

--- Bytes of a prototype with other code. code and lines: one per instruction; front: how many were put in front; params, vararg: the new ones.
-- frame: slots, when more than before.
function M.rewrite(p, code, lines, front, params, vararg, frame)
   local flags = p.flags
   if vararg and not p.vararg then flags = flags + 2 elseif p.vararg and not vararg then flags = flags - 2 end
   local bytes = {}
   for i, w in ipairs(code) do bytes[i] = u32(w) end
   local head = string.char(flags, params, math.min(math.max(frame or p.framesize, params + 2), 250), p.nuv)
      .. uleb(p.sizes[1]) .. uleb(p.sizes[2]) .. uleb(#code)
   local info = ''
   if p.lines then
      info = debugInfo(p, lines, front)
      head = head .. uleb(#info) .. uleb(p.firstline) .. uleb(p.numline)
   elseif not p.strip then
      head = head .. '\0'
   end
   return head .. table.concat(bytes) .. sub(p.raw, p.restAt, p.debugAt - 1) .. info
end

--- Lists a prototype, one instruction a line.
function M.list(p)
   local out = {}
   for pc, ins in ipairs(p.code) do out[pc] = ('%04d  %s'):format(pc, M.format(p, ins)) end
   return table.concat(out, '\n')
end

-- One instruction as text, with its constant.
function M.format(p, ins)
   local rest
   if ins.target then rest = ('%d => %04d'):format(ins.a, ins.target)
   elseif ins.b then rest = ('%d %d %d'):format(ins.a, ins.b, ins.c)
   else rest = ('%d %d'):format(ins.a, ins.d) end
   local k
   if ins.op == 'KSTR' or ins.op == 'GGET' or ins.op == 'GSET' then k = p.kgc[ins.d]
   elseif ins.op == 'TGETS' or ins.op == 'TSETS' then k = p.kgc[ins.c]
   elseif ins.op == 'UGET' then k = p.uvnames and p.uvnames[ins.d + 1] end
   return ('%-6s %s%s'):format(ins.op, rest, k and '  ; ' .. tostring(k) or '')
end

return M
