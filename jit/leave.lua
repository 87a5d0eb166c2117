-- Leaving: the last lines of a generated function whose path ends at a graph break or an error
-- (exit -> calls of the step and of the resume functions; see chain.lua).

local emit = require 'relume.jit.emit'
local value = require 'relume.jit.value'

local Emit = emit.Emit
local fmt, concat = string.format, table.concat
local NIL = value.NIL
local CLOSURE = 40 -- most values that a function inside takes as upvalues; more go through a table

-- What a resume function learns from the values it will get.
local function foresee(marks, slot, v)
   if not marks then return end
   if v.k == 'gnum' then marks.dyn['a' .. slot + 1] = true end
   if v.k == 'func' and not v.real then marks.proto['a' .. slot + 1] = true end
end

-- The cell of a shared variable: a function that reads and writes it, which closures share.
local function cellOf(self, c)
   self.cells = self.cells or {}
   if self.cells[c] then return self.cells[c] end
   local name = self:keep(self.body, 'newCell()')
   self.cells[c] = name
   if self.built[c] then
      self:line('upvaluejoin(%s, 1, %s)', name, self.built[c])
   else
      self.built[c] = name .. ', 1'
      self:line('%s(true, %s)', name, self:val(self.ctx:cellGet(c)))
   end
   return name
end

-- The cell that a slot of a segment holds, nil when it holds a value.
local function cellText(self, seg, slot)
   local s = seg.shared[slot]
   if s then return s.cell and cellOf(self, s.cell) or self:val(s.value) end
end

-- Value of a slot, that of its variable when it holds a cell.
local function slotValue(self, seg, slot)
   local s = seg.shared[slot]
   if not s or s.cell then return seg.frame.slots[slot] end
   return self.ctx:cellGet(self.ctx:cell(s.value, 1))
end

local callers = {}

-- A function that calls another as if it stood at a place of the program, so that errors and tracebacks name that place.
local function callerAt(p, pc)
   local line = p.lines and p.lines[pc]
   if not line then return end
   local key = p.chunk .. ':' .. line
   if not callers[key] then
      local source = ('\n'):rep(line - 1) .. 'local pass = ... return function(f, ...) return pass(f(...)) end'
      callers[key] = assert(loadstring(source, p.chunk))(function(...) return ... end)
   end
   return callers[key]
end

-- Call of a function of a segment: by the frame outside, when that is a frame of the program.
local function callText(self, seg, fn, list)
   local by = seg.outer and callerAt(seg.outer.p, seg.outer.pc)
   if not by then return fmt('%s(%s)', self:k(fn), concat(list, ', ')) end
   return fmt('%s(%s%s%s)', self:k(by), self:k(fn), list[1] and ', ' or '', concat(list, ', '))
end

-- Call of a resume function: live slots, then variable arguments or pending results. given: slot -> text.
local function restCall(self, seg, to, given, pending)
   local list, f = {}, seg.frame
   if to.generic then list[1] = self:val(f.fn) end
   for s = 0, to.n - 1 do
      local v = f.slots[s]
      local cell = to.live[s] and cellText(self, seg, s)
      list[#list + 1] = cell or given[s] or to.live[s] and self:val(v) or 'nil'
      if not cell and not given[s] and to.live[s] then foresee(to.marks, s, v) end
   end
   if pending then
      list[#list + 1] = pending
   elseif seg.p.vararg then
      if seg.home and f.entry and self.vararg then list[#list + 1] = '...'
      else
         for i = 1, f.varargs.n do list[#list + 1] = self:val(f.varargs[i]) end
      end
   end
   return callText(self, seg, to.fn, list)
end

local function stepCall(self, seg)
   local s, f, list = seg.step, seg.frame, {}
   for k = 0, s.params - 1 do
      if k == seg.calleeSlot then list[k + 1] = self:k(seg.callee)
      else list[k + 1] = s.read[k] and self:val(slotValue(self, seg, k)) or 'nil' end
   end
   if s.pending then
      for k = 1, f.multres.n do list[#list + 1] = self:val(f.multres[k] or NIL) end
   end
   return callText(self, seg, s.fn, list)
end

-- New locals for n results that go to slots base ...; returns slot -> name, and the names.
local function names(self, base, n)
   local given, list = {}, {}
   for i = 1, n do
      self.nresult = (self.nresult or 0) + 1
      list[i] = 'r' .. self.nresult
      given[base + i - 1] = list[i]
   end
   return given, concat(list, ', ')
end

-- Results that go to shared variables are stored in them.
local function store(self, seg, given, lines)
   for slot, name in pairs(given) do
      local cell = cellText(self, seg, slot)
      if cell then lines[#lines + 1] = fmt('%s(true, %s)', cell, name) end
   end
end

-- A function without parameters around lines and an expression.
local function closure(self, lines, expr)
   local text = fmt('function() %s return %s end', concat(lines, '; '), expr)
   local seen, list = {}, {}
   for name in text:gmatch '%f[%w_][xoa]_?_?%d+%f[^%w_]' do
      if not seen[name] then
         list[#list + 1] = name
         seen[name] = #list
      end
   end
   if #list <= CLOSURE then return text end
   self.npack = (self.npack or 0) + 1
   local pack = 'P' .. self.npack
   self.packs = self.packs or {}
   self.packs[#self.packs + 1] = fmt('local %s = {%s}', pack, concat(list, ', '))
   return (text:gsub('%f[%w_][xoa]_?_?%d+%f[^%w_]', function(name) return fmt('%s[%d]', pack, seen[name]) end))
end

-- Library functions between a frame and the one outside, called again around what is inside.
local around = {}
function around.pcall(self, f) return fmt('%s(%s)', self:k(pcall), f) end
function around.xpcall(self, f, via) return fmt('%s(%s, %s)', self:k(xpcall), f, self:val(via.handler)) end
function around.grad(_, f, via) return fmt('withGrad(%s, %s)', tostring(via.was), f) end

-- copy: slots between which a test that holds moves its value.
local function branch(self, seg, condition, copy)
   if seg.negate then condition = 'not ' .. condition end
   local given = copy and {[copy.to] = self:val(slotValue(self, seg, copy.from))} or {}
   return fmt('if %s then return %s end', condition, restCall(self, seg, seg.next, given)), restCall(self, seg, seg.other, {})
end

-- The innermost frame: lines, and the expression of its results. fork: the lines may return themselves.
local function innermost(self, seg, lines)
   local s = seg.step
   if seg.kind == 'rest' then return restCall(self, seg, seg.next, {}) end
   local run = stepCall(self, seg)
   if s.kind == 'last' then return run end
   if s.kind == 'branch' then
      local go, other = branch(self, seg, run, s.copy)
      lines[1] = go
      return other, true
   end
   local given, list = names(self, s.base, s.n)
   lines[1] = (list ~= '' and 'local ' .. list .. ' = ' or '') .. run
   store(self, seg, given, lines)
   local go = restCall(self, seg, seg.next, given)
   if not s.loop then return go end
   lines[#lines + 1] = fmt('if %s ~= nil then return %s end', given[s.base + 3], go)
   return restCall(self, seg, seg.other, {}), true
end

-- A frame outside: takes the expression of the inner frame's results.
local function outside(self, seg, lines, expr)
   if seg.kind == 'tail' then return expr end
   if seg.kind == 'pending' then return restCall(self, seg, seg.next, {}, expr) end
   if seg.kind == 'branch' then
      local _, name = names(self, 0, 1)
      lines[#lines + 1] = fmt('local %s = %s', name, expr)
      local go, other = branch(self, seg, name)
      lines[#lines + 1] = go
      return other, true
   end
   local given, list = names(self, seg.base, seg.n)
   lines[#lines + 1] = seg.n == 0 and expr or fmt('local %s = %s', list, expr)
   store(self, seg, given, lines)
   return restCall(self, seg, seg.next, given)
end

--- The last lines of a function that is left at a graph break.
function Emit:leave(list)
   local lines, expr = {}, nil
   for k, seg in ipairs(list) do
      if seg.via and not seg.via.outer then seg.outer = list[k + 1] end
      local forks
      if k == 1 then expr, forks = innermost(self, seg, lines)
      else expr, forks = outside(self, seg, lines, expr) end
      local via = seg.via
      while via and via.outer do
         expr = around[via.kind](self, closure(self, lines, expr), via)
         lines, forks = {}, false
         via = via.outer
      end
      if forks and k < #list then expr, lines = fmt('(%s)()', closure(self, lines, expr)), {} end
   end
   lines[#lines + 1] = 'return ' .. expr
   for i, pack in ipairs(self.packs or {}) do table.insert(lines, i, pack) end
   return concat(lines, '\n')
end

--- The last line of a function whose path ends in an error.
function Emit:throw(e)
   return fmt('error(%s, %d)', self:val(e.value), e.level or 0)
end

return Emit
