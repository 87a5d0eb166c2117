-- Explain: what torch.compile makes of a call, as a table that prints (function, arguments -> report).

local compile = require 'relume.jit.compile'
local breaks = require 'relume.jit.breaks'
local emit = require 'relume.jit.emit'
local bytecode = require 'relume.jit.bytecode'
local resume = require 'relume.jit.resume'

local Report = {}
Report.__index = Report

local function sortedOps(ops)
   local names = {}
   for name in pairs(ops) do names[#names + 1] = name end
   table.sort(names)
   for i, name in ipairs(names) do names[i] = ('%s %d'):format(name, ops[name]) end
   return table.concat(names, ', ')
end

--- The report as text.
function Report:__tostring()
   local out = {('%s: graphs %d, breaks %d, ops %d, kernels %d, library calls %d, guards %d, compiles %d'):format(self.name, self.graphs, self.breaks,
      self.nops, self.kernels, self.calls, #self.guards, self.compiles)}
   for i, ops in ipairs(self.ops) do out[#out + 1] = ('  graph %d: %s'):format(i, sortedOps(ops)) end
   if self.error then out[#out + 1] = '  the program raises: ' .. tostring(self.error) end
   for _, b in ipairs(self.list) do out[#out + 1] = ('  break %s at %s: %s\n     hint: %s'):format(b.id, b.where, b.reason, b.hint) end
   for _, r in ipairs(self.recompiles) do out[#out + 1] = '  recompiled because of: ' .. r end
   for _, g in ipairs(self.guards) do out[#out + 1] = '  guard ' .. g end
   return table.concat(out, '\n')
end

local function addBreak(r, b)
   for _, other in ipairs(r.list) do
      if other.id == b.id and other.where == b.where then return end
   end
   r.list[#r.list + 1] = {id = b.id, reason = b.sentence, hint = b.hint, where = b.where or '?'}
   r.breaks = #r.list
end

local function addOps(r, ops)
   if not next(ops) then return end
   r.graphs = r.graphs + 1
   r.ops[r.graphs] = ops
   for _, n in pairs(ops) do r.nops = r.nops + n end
end

-- What the calls so far compiled behind and inside of breaks.
local function addParts(r, state)
   for _, s in ipairs(state.family) do
      r.compiles = r.compiles + (s.stats.compiles or 0)
      for _, b in ipairs(s.breaks) do addBreak(r, b) end
      for i = #s.entries, 1, -1 do
         if s.entries[i].ops then addOps(r, s.entries[i].ops) end
      end
      for _, reason in ipairs(s.reasons) do r.recompiles[#r.recompiles + 1] = reason end
   end
end

local function addGraph(r, ctx, emitter, opts)
   for i, g in ipairs(emitter.guardInfo) do r.guards[i] = ('%s (%s)'):format(emit.describe(g), g.where or '?') end
   if not ctx.graph then return end
   local ok, run, plan = compile.compileGraph(ctx, emitter, opts)
   if not ok then return addBreak(r, run) end
   addOps(r, ctx.graph:ops())
   if plan then
      r.plan = plan:info()
      r.kernels, r.calls = r.plan.kernels, r.plan.calls
   end
end

-- Breaks that the capture of this call meets, and the graph in front of the first.
local function addPrefix(r, raw, state, marks, opts, b, failed, ...)
   addBreak(r, b)
   local place = breaks.resumable[b.id] and resume.place(failed, state)
   if not place then return end
   local ctx, e = compile.capture(raw, marks, opts, state, place, ...)
   if ctx then addGraph(r, ctx, e, opts) end
end

--- Captures f(...) without running it and without changing anything. f may be compiled already: then its recompiles are listed too.
-- @return table with graphs, breaks, ops, nops, kernels, calls, guards, recompiles, compiles, list (the breaks), plan; tostring gives text
return function(f, ...)
   local state = compile.states[f]
   local raw = state and state.f or f
   local p = bytecode.of(raw)
   local r = setmetatable({graphs = 0, breaks = 0, nops = 0, kernels = 0, calls = 0, ops = {}, guards = {}, recompiles = {}, list = {}, compiles = 0,
      name = bytecode.where({chunk = p.chunk, firstline = p.firstline}, 0)}, Report)
   local marks, opts = {dyn = {}, struct = {}, proto = {}}, {}
   if state then
      marks, opts, r.compiles = state.marks, state.opts, state.stats.compiles or 0
      for i, reason in ipairs(state.reasons) do r.recompiles[i] = reason end
      for _, b in ipairs(state.breaks) do addBreak(r, b) end
   end
   state = state or compile.states[compile.compile(raw)]
   local ctx, e, failed = compile.capture(raw, marks, opts, state, nil, ...)
   if ctx then addGraph(r, ctx, e, opts)
   elseif breaks.isRaised(e) then r.error = e.value and e.value.v
   else addPrefix(r, raw, state, marks, opts, e, failed, ...) end
   addParts(r, state)
   return r
end
