-- Explain: what torch.compile makes of a call, as a table that prints (function, arguments -> report).
--
-- The report: name; graphs, ops (list of {op = count}), nops; kernels, calls, plan (of the first graph); breaks, list ({id, reason, hint, where, line});
-- guards ({text, where, kind, ns}), guardNs (all of them, as a call runs them); compiles, entries, eager, limit (calls beyond the limit);
-- symbols (lines on free sizes and numbers), noted (guards on them, {text, where, kind}), plans;
-- recompiles ({guard, where, was, now, name, advice}); help (sentences); error (what the program raises).

local compile = require 'relume.jit.compile'
local breaks = require 'relume.jit.breaks'
local trial = require 'relume.jit.trial'
local checks = require 'relume.jit.checks'
local guard = require 'relume.jit.guard'
local bytecode = require 'relume.jit.bytecode'
local sizes = require 'relume.jit.sizes'

local Report = {}
Report.__index = Report

local function sortedOps(ops)
   local names = {}
   for name in pairs(ops) do names[#names + 1] = name end
   table.sort(names)
   for i, name in ipairs(names) do names[i] = ('%s %d'):format(name, ops[name]) end
   return table.concat(names, ', ')
end

local function plural(n, what) return ('%d %s%s'):format(n, what, n == 1 and '' or 's') end

local function printGuards(out, r)
   if #r.guards == 0 then return end
   local total = r.guardNs and (', %.0f ns a call'):format(r.guardNs) or ''
   out[#out + 1] = ('  %s%s; each by itself, interpreted:'):format(plural(#r.guards, 'guard'), total)
   for _, g in ipairs(r.guards) do
      out[#out + 1] = ('  %6s ns  %s%s'):format(g.ns and ('%.0f'):format(g.ns) or '?', g.text, g.where and (' (%s)'):format(g.where) or '')
   end
end

local function printSymbols(out, r)
   if #r.symbols == 0 then return end
   out[#out + 1] = ('  %s, for which there are %s so far'):format(plural(#r.symbols, 'symbol'), plural(r.plans, 'plan'))
   for _, s in ipairs(r.symbols) do out[#out + 1] = '     ' .. s end
   for _, g in ipairs(r.noted) do out[#out + 1] = ('     %s (%s)'):format(g.text, g.where) end
end

--- The report as text.
function Report:__tostring()
   local out = {('%s: graphs %d, breaks %d, ops %d, kernels %d, library calls %d, guards %d, compiles %d, entries %d'):format(self.name, self.graphs,
      self.breaks, self.nops, self.kernels, self.calls, #self.guards, self.compiles, self.entries)}
   for i, ops in ipairs(self.ops) do out[#out + 1] = ('  graph %d: %s'):format(i, sortedOps(ops)) end
   if self.error then out[#out + 1] = '  the program raises: ' .. tostring(self.error) end
   for _, b in ipairs(self.list) do
      out[#out + 1] = ('  break %s at %s: %s%s\n     hint: %s'):format(b.id, b.where, b.reason, b.line and '\n     line: ' .. b.line or '', b.hint)
   end
   for _, why in ipairs(self.recompiles) do out[#out + 1] = '  recompiled because of: ' .. tostring(why) end
   if self.limit > 0 then out[#out + 1] = ('  beyond the limit of entries: %s, run eagerly'):format(plural(self.limit, 'call')) end
   if self.small then out[#out + 1] = '  ' .. self.small end
   for _, text in ipairs(self.help) do out[#out + 1] = '  what would help: ' .. text end
   printSymbols(out, self)
   printGuards(out, self)
   return table.concat(out, '\n')
end

-- The text of a source line 'file:n', nil when the file cannot be read.
local function sourceLine(where)
   local name, n = (where or ''):match '^(.*):(%d+)$'
   local file = name and io.open(name)
   if not file then return end
   local at, text = 0
   for line in file:lines() do
      at = at + 1
      if at == tonumber(n) then text = line:match '^%s*(.-)%s*$' break end
   end
   file:close()
   return text
end

local function addBreak(r, b)
   for _, other in ipairs(r.list) do
      if other.id == b.id and other.where == b.where then return end
   end
   r.list[#r.list + 1] = {id = b.id, reason = b.sentence, hint = b.hint, where = b.where or '?', line = sourceLine(b.where)}
   r.breaks = #r.list
end

local function addOps(r, ops)
   if not next(ops) then return end
   r.graphs = r.graphs + 1
   r.ops[r.graphs] = ops
   for _, n in pairs(ops) do r.nops = r.nops + n end
end

local function addCounts(r, s)
   r.compiles = r.compiles + (s.stats.compiles or 0)
   r.plans = r.plans + (s.stats.plans or 0)
   r.eager = r.eager + (s.stats.eager or 0)
   r.limit = r.limit + (s.stats.limit or 0)
   r.entries = r.entries + #s.entries
   for _, b in ipairs(s.breaks) do addBreak(r, b) end
   for _, why in ipairs(s.reasons) do r.recompiles[#r.recompiles + 1] = why end
end

-- What the calls so far compiled behind and inside of breaks.
local function addParts(r, state)
   for _, s in ipairs(state.family) do
      addCounts(r, s)
      for i = #s.entries, 1, -1 do
         if s.entries[i].ops then addOps(r, s.entries[i].ops) end
      end
   end
end

local function addGuards(r, ctx, emitter, p, ...)
   for i, g in ipairs(emitter.guardInfo) do r.guards[i] = {text = guard.describe(g), where = g.where, kind = g.kind} end
   for _, g in ipairs(emitter.noted) do r.noted[#r.noted + 1] = {text = guard.describe(g), where = g.where, kind = g.kind} end
   for _, line in ipairs(sizes.describe(ctx)) do r.symbols[#r.symbols + 1] = line end
   local ok, each, all = pcall(checks.measure, ctx, p, ...)
   if not ok then return end
   for i, g in ipairs(r.guards) do g.ns = each[i] end
   r.guardNs = all
end

-- Sentences, each once: hints of breaks, then what to do about guards that failed.
local function addHelp(r)
   local seen = {}
   local function add(text)
      if not seen[text] then r.help[#r.help + 1] = text end
      seen[text] = true
   end
   for _, b in ipairs(r.list) do add(('%s: %s'):format(b.where, b.hint)) end
   local times = {}
   for _, why in ipairs(r.recompiles) do -- one recompile for what changes is how it learns; the same again is not
      times[why.source] = (times[why.source] or 0) + 1
      if times[why.source] == 2 then add(('%s changes: %s'):format(why.source, why.advice)) end
   end
end

local function addGraph(r, ctx, emitter, opts, p, ...)
   addGuards(r, ctx, emitter, p, ...)
   if not ctx.graph then return end
   local ok, run, _, plan = compile.compileGraph(ctx, emitter, opts)
   if not ok then return addBreak(r, run) end
   addOps(r, ctx.graph:ops())
   if plan then
      r.plan = plan:info()
      r.kernels, r.calls = r.plan.kernels, r.plan.calls
   end
end

-- Breaks that the capture of this call meets, and the graph in front of the first.
local function addPrefix(r, state, marks, opts, b, failed, ...)
   if breaks.is(b) then addBreak(r, b) end
   local ctx, e = compile.captureTo(state, marks, opts, b, failed, ...)
   if ctx then addGraph(r, ctx, e, opts, state.proto, ...) end
end

--- Captures f(...) without running it and without changing anything. f may be compiled already: then its recompiles are listed too.
-- @return the report
return function(f, ...)
   local state = compile.states[f]
   local raw = state and state.f or f
   local p = bytecode.of(raw)
   local r = setmetatable({graphs = 0, breaks = 0, nops = 0, kernels = 0, calls = 0, ops = {}, guards = {}, recompiles = {}, list = {}, help = {},
      symbols = {}, noted = {}, plans = 0, compiles = 0, entries = 0, eager = 0, limit = 0,
      name = bytecode.where({chunk = p.chunk, firstline = p.firstline}, 0)}, Report)
   local marks, opts = sizes.marks(), {}
   if state then
      marks, opts = state.marks, state.opts
      addCounts(r, state)
   end
   state = state or compile.states[compile.compile(raw)]
   local ctx, e, failed = compile.capture(raw, marks, opts, state, nil, ...)
   local thrown = ctx and ctx.exit and ctx.exit.throw or breaks.isRaised(e) and e
   if thrown then r.error = thrown.value and thrown.value.v end
   if ctx then addGraph(r, ctx, e, opts, p, ...)
   else addPrefix(r, state, marks, opts, e, failed, ...) end
   addParts(r, state)
   addHelp(r)
   r.small = trial.describe(state)
   return r
end
