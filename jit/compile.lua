-- Compiled functions: entries of one closure, most recently used first (closure, options -> function).
-- A call runs the first entry; an entry whose guards fail hands the call on; when none is left, the call is captured or runs eagerly.

local bytecode = require 'relume.jit.bytecode'
local value = require 'relume.jit.value'
local breaks = require 'relume.jit.breaks'
local Context = require 'relume.jit.context'
local tensors = require 'relume.jit.tensor'
local call = require 'relume.jit.call'
require 'relume.jit.eval'
require 'relume.jit.builtin'
require 'relume.jit.coroutine'
require 'relume.jit.gradient'
local guard = require 'relume.jit.guard'
local emit = require 'relume.jit.emit'
local history = require 'relume.jit.history'
local fail = require 'relume.jit.fail'
local records = require 'relume.jit.records'
require 'relume.jit.chunk'
require 'relume.jit.grow'
local checks = require 'relume.jit.checks'
local share = require 'relume.jit.share'
local trial = require 'relume.jit.trial'
local chain = require 'relume.jit.chain'
local resume = require 'relume.jit.resume'
require 'relume.jit.leave'
local runtime = require 'relume.jit.runtime'
local sizes = require 'relume.jit.sizes'
local log = require 'relume.jit.debug'
local okC, C = pcall(require, 'relume.core')

local M = {}
local State = {}
State.__index = State
local LIMIT, ATTEMPTS = 8, 3
local PLANS = 128 -- an entry that made so many plans, and more than one for two calls, makes no more
local PARTS = 96 -- most resume points and callees that one compiled function compiles

-- Compiled functions; each holds its state as its first upvalue, so that nothing keeps alive what only its own state refers to.
M.made = setmetatable({}, {__mode = 'k'})
M.states = setmetatable({}, {__index = function(_, f) -- compiled function -> state
   return f and M.made[f] and select(2, debug.getupvalue(f, 1)) or nil
end})
call.wrapped = setmetatable({}, {__index = function(_, f)
   local s = M.states[f]
   return s and s.f
end})
M.warnings = true

local function warn(text)
   if M.warnings then io.stderr:write('[relume] ', text, '\n') end
end

-- Capture ----------------------------------------------------------------------------------------------------------------------

-- Argument values of the outermost frame.
-- boxed: slots that hold cells.
local function argumentValues(ctx, proto, boxed, ...)
   local args = {n = math.max(select('#', ...), proto.params)}
   for i = 1, args.n do
      local raw = (select(i, ...))
      local src
      if i > proto.params then src = value.vararg(i - proto.params) else src = value.argument(i, bytecode.varname(proto, 1, i - 1)) end
      args[i] = ctx:wrap(raw, src)
      if boxed and boxed[i - 1] then args[i].g, args[i].byproto = true, true end
   end
   return args
end

local function evaluate(ctx, f, proto, boxed, ...)
   local fn = ctx:constant(f)
   fn.g = true
   if proto.vararg then ctx:guard {kind = 'nargs', value = math.max(select('#', ...) - proto.params, 0)} end
   return ctx:inline(fn, argumentValues(ctx, proto, boxed, ...), proto)
end

-- The same for a function that is loaded anew each call: it is the first argument.
local function evaluateGeneric(ctx, proto, boxed, f, ...)
   local fn = ctx:wrap(f, value.argument(0, 'the function'))
   fn.g, fn.byproto, ctx.generic = true, true, true
   if proto.vararg then ctx:guard {kind = 'nargs', value = math.max(select('#', ...) - proto.params, 0)} end
   return ctx:inline(fn, argumentValues(ctx, proto, boxed, ...), proto)
end

local function handler(e)
   if type(e) == 'table' then return e end
   return {internal = tostring(e), trace = debug.traceback('', 2)}
end

local function asBreak(ctx, e)
   if breaks.is(e) or breaks.isRaised(e) then return e end
   if log.level > 0 and e.trace then log.log(1, 'internal error: %s%s', tostring(e.internal), e.trace) end
   return breaks.new('internal', e.internal or tostring(e), ctx:where())
end

-- Evaluates to the end, or to the place of a graph break. Returns the results.
local function evaluateTo(ctx, state, place, f, proto, ...)
   local args, n = {...}, select('#', ...)
   ctx.stopAt = place and place.at
   local ok, e = xpcall(function()
      if state.generic then return evaluateGeneric(ctx, proto, state.boxed, unpack(args, 1, n)) end
      return evaluate(ctx, f, proto, state.boxed, unpack(args, 1, n))
   end, handler)
   if ok and not place then return e end
   if ok then ctx:brk('internal', 'the place of a break was not found again') end
   if breaks.isRaised(e) and e.thrown and not place then -- by error or assert: an end like any other
      ctx.exit = {throw = e}
      return {n = 0}
   end
   if e ~= breaks.STOP then error(e, 0) end
   local at, eagerly
   ctx.exit, at, eagerly = chain.exit(ctx, state, place)
   if not ctx.exit then ctx:brk('escape', 'the state at a graph break', nil, at, eagerly) end
   local last = ctx.frames[#ctx.frames]
   last.pc = last.pc + 1
   return {n = 0}
end

--- Evaluates f symbolically and emits its path. Returns context and emitter, or nil, a break (or the program's own error) and the context.
-- state and place: the compiled function, and where to stop (see chain.place).
function M.capture(f, marks, opts, state, place, ...)
   local proto = state.proto
   local ctx = Context.new(marks, opts)
   ctx.place = place
   ctx.home = bytecode.where({chunk = proto.chunk, firstline = proto.firstline}, 0)
   ctx.gradAtStart = okC and C.gradEnabled()
   if log.level >= 6 then ctx.trace = log.trace end
   local args, n = {...}, select('#', ...)
   local emitter
   local ok, e = xpcall(function()
      local results = evaluateTo(ctx, state, place, f, proto, unpack(args, 1, n))
      if ctx.gradStart ~= nil then C.setGradEnabled(ctx.gradStart) ctx.gradEnd = ctx.gradNow end
      ctx.mutates = ctx.graph and ctx.graph:count() > 0 -- also ops whose results are dropped: they draw random numbers
      records.collect(ctx)
      emitter = emit.prepare(ctx, proto.params, proto.vararg, results)
      if ctx.escapes or ctx.rewritten or ctx.kept then
         ctx.stopAt = nil
         history.joint(ctx)
         emitter = emit.prepare(ctx, proto.params, proto.vararg, results)
         if ctx.outputs.n ~= ctx.joint.nout then ctx:brk('internal', 'a result that the gradients do not know') end
      end
   end, handler)
   ctx:stop()
   if e == breaks.AGAIN then return M.capture(f, marks, opts, state, place, ...) end
   if not ok then return nil, asBreak(ctx, e), ctx end
   return ctx, emitter
end

-- Plans ------------------------------------------------------------------------------------------------------------------------

-- backend(graph, inputs) -> function of tensors, then numbers.
M.backends = {
   -- Runs the graph op by op with eager's kernels: what is wrong here is capture's fault, what is wrong with the default alone is the compiler's.
   eager = function(g, inputs)
      local n = #inputs
      return function(...) return g:run({unpack({...}, 1, n)}, {select(n + 1, ...)}) end
   end,
}

local function called(h, ...) return h(...) end

-- graph, inputs -> what runs it, what that is given first, and the plan when it is one of ours.
local function compiler(opts, family)
   local backend = opts.backend
   if backend == 'c' then backend = nil end
   backend = M.backends[backend] or backend
   if not backend then
      return function(g)
         local plan = g:compile {strict = opts.strict or false, mode = opts.mode, family = family}
         return plan.call, plan, plan
      end
   end
   return function(g, inputs)
      local f = backend(g, inputs)
      assert(type(f) == 'function', '[compile] backend; got no function, need one that takes the inputs')
      return called, f
   end
end

local function planRunner(ctx, opts, family)
   if not ctx.joint then return compiler(opts, family)(ctx.graph, ctx.inputs) end
   local whole = opts.backend and opts.backend ~= 'c' -- eager's kernels round as eager does only for the ops that eager runs
   return history.compile(ctx, compiler(opts, family), whole)
end

-- Compiles the graph; nil when there is nothing to run. family: of the plans of an entry with free sizes.
-- Returns true, what runs it, what that is given first, and the plan when it is one of ours.
local function compileGraph(ctx, emitter, opts, family)
   if not ctx.graph then return true end
   if not emitter.call then return true end
   local ok, run, handle, plan = pcall(planRunner, ctx, opts, family)
   if not ok then return nil, breaks.new('compile-failed', (tostring(run):gsub('\n.*', '')), ctx:where()) end
   if emitter.callsTo then run = plan.callTo end
   return true, fail.guarded(run, ctx.graph), handle, plan
end

-- Entries ----------------------------------------------------------------------------------------------------------------------

function State:count(kind)
   self.stats[kind] = (self.stats[kind] or 0) + 1
end

-- Lets go of everything that an entry does not need, the tensors of the captured call first of all.
local function release(ctx)
   for _, v in ipairs(ctx.inputs) do v.real, v.fake, v.grad0, v.gradient, v.entry, v.leaf = nil, nil, nil, nil, nil, nil end
   for _, g in ipairs(ctx.guards) do g.real = nil end
   ctx.byfake, ctx.objects, ctx.cells, ctx.touched, ctx.touchedCells, ctx.outputs, ctx.graph, ctx.frames = {}, {}, {}, {}, {}, nil, nil, {}
   ctx.escapes, ctx.rewritten, ctx.kept, ctx.joint, ctx.callbacks, ctx.blind = nil, nil, nil, nil, nil, nil
   ctx.tables, ctx.tapeKeys, ctx.valueKeys, ctx.packages, ctx.exit = {}, {}, nil, nil, nil
end

function State:addEntry(ctx, emitter, run, handle, plan)
   local entry = {ctx = ctx, plan = plan, guards = emitter.guardInfo, places = emitter.places}
   entry.fn, entry.text, entry.make = emit.finish(emitter, run, handle, function(i, ...) return self:missed(entry, i, ...) end, runtime, self)
   if emitter.keyed then
      entry.guard, entry.P, entry.Hs, entry.identity = emitter.tguard, emitter.P, emitter.Hs, emit.identity(emitter)
      self:addPlan(entry, emitter, handle)
   end
   entry.leaves = ctx.exit ~= nil
   local broken = ctx.exit and not ctx.exit.throw or self.root ~= self
   entry.ops = ctx.graph and ctx.graph:ops()
   table.insert(self.entries, 1, entry)
   self.attempts = 0
   trial.enter(self, entry.fn)
   self:count 'compiles'
   entry.nodes = ctx.graph and ctx.graph:count() or 0
   release(ctx)
   share.offer(self, entry)
   if broken then trial.begin(self.root) end
   log.log(1, 'compiled %s: %d guards, %d graph nodes', self.name, #entry.guards, entry.nodes)
   if log.level >= 3 then
      for _, g in ipairs(entry.guards) do log.log(3, '   guard %s (%s)', emit.describe(g), g.where or '') end
   end
   if log.level >= 4 then log.log(4, 'entry of %s\n%s', self.name, entry.text) end
   return entry
end

-- An entry that another object of the class made, for this one.
function State:adopt(other)
   local entry = {ctx = other.ctx, plan = other.plan, guards = other.guards, text = other.text, ops = other.ops, nodes = other.nodes, from = other}
   entry.fn = other.make(function(i, ...) return self:missed(entry, i, ...) end, self)
   table.insert(self.entries, 1, entry)
   self.attempts = 0
   trial.enter(self, entry.fn)
   self:count 'shared'
   log.log(1, '%s takes the entry of another object', self.name)
   return entry
end

-- Runs the program's own function.
local function eager(self, ...)
   self:count 'eager'
   return self.f(...)
end

--- Called by an entry whose plan failed: eager raises as the program does.
function State:again(...) return eager(self, ...) end

function State:broke(b)
   self.attempts = self.attempts + 1
   self.breaks[#self.breaks + 1] = b
   if self.root.opts.fullgraph then error(b:message(), 0) end
   log.log(1, '%s runs eagerly: %s', self.name, b:message())
   if self.attempts >= ATTEMPTS and #self.entries == 0 then self.top = self.f end
end

--- Captures up to a graph break, or to where the program raises an error; nil when what follows cannot be run from there.
-- failed: the context of the capture that met it.
function M.captureTo(state, marks, opts, b, failed, ...)
   local raised = breaks.isRaised(b)
   if not raised and (opts.fullgraph or not breaks.resumable[b.id] and not b.at) then return end
   local place = not raised and b.at and {at = b.at, lifted = true, rest = b.rest} or chain.place(failed)
   for _ = 1, 3 do
      if not place then return end
      local ctx, emitter = M.capture(state.f, marks, opts, state, place, ...)
      if ctx then return ctx, emitter end
      log.log(1, '%s cannot resume behind a break: %s', state.name, tostring(emitter))
      -- Stop where the value was made that cannot be rebuilt.
      place = emitter.at and emitter.at < place.at and {at = emitter.at, lifted = true, rest = emitter.rest}
   end
end

-- Evaluates the call to its end or up to a graph break: context and emitter, or nil when it runs eagerly.
local function evaluated(self, ...)
   self.capturing = true
   local ctx, emitter, failed = M.capture(self.f, self.marks, self.opts, self, nil, ...)
   if not ctx then
      local b = emitter
      local part, partEmitter = M.captureTo(self, self.marks, self.opts, b, failed, ...)
      if part then ctx, emitter = part, partEmitter end
      if part and breaks.is(b) then
         self.breaks[#self.breaks + 1] = b
         log.log(1, '%s: %s', self.name, b:message())
      end
   end
   self.capturing = false
   if ctx then
      local s, g = sizes.broken(ctx)
      if not s then return ctx, emitter end
      error(('[markDynamic] dimension %d of %s; %s works for size %d only, because of: %s (%s)'):format(s.dim, s.src.text, self.name, s.hint,
         emit.describe(g), g.where or '?'), 0)
   end
   if breaks.isRaised(emitter) then log.log(1, '%s raises while captured: %s', self.name, tostring(emitter.value.v))
   else self:broke(emitter) end
end

-- Shows a new family what follows the free sizes: the call evaluated with other ones, or a plan made before for those that it had.
local function probe(self, family, like, emitter, ...)
   local opts = setmetatable({probing = true}, {__index = self.opts})
   self.capturing = true
   local ctx, e = M.capture(self.f, self.marks, opts, self, like.place, ...)
   self.capturing = false
   if ctx and ctx.graph and emit.same(emitter, e) and pcall(family.probe, family, ctx.graph, self.opts.strict) then return end
   local last = self.entries[1]
   if last and last.plan and not last.identity then pcall(family.probe, family, last.plan, self.opts.strict) end
end

-- Compiles what was evaluated and runs it.
local function enter(self, ctx, emitter, ...)
   local family = emitter.keyed and ctx.graph and emitter.call and C.planFamily() or nil
   if family and not ctx.joint then probe(self, family, ctx, emitter, ...) end
   local ok, run, handle, plan = compileGraph(ctx, emitter, self.opts, family)
   if not ok then
      self:broke(run)
      return eager(self, ...)
   end
   local entry = self:addEntry(ctx, emitter, run, handle, plan)
   entry.family = family
   return entry.fn(...)
end

local function busy(self) return self.capturing or okC and C.recording and C.recording() end

local Reason = {}
Reason.__index = Reason
function Reason:__tostring()
   local place, name = self.where and (' (%s)'):format(self.where) or '', self.name and ', ' .. self.name or ''
   return ('%s%s%s: was %s, is %s'):format(self.guard, place, name, self.was, self.now)
end

-- Why another entry is made, as a record {guard, where, was, now, name, advice}.
local function reasonOf(g)
   return setmetatable({guard = emit.describe(g), where = g.where, was = g.was and tostring(g.was) or '?', now = g.now and tostring(g.now) or '?',
      kind = g.kind, advice = guard.advice(g), source = g.src and g.src.text or emit.describe(g)}, Reason)
end

--- Captures the call, adds an entry, runs it; runs the function eagerly when it cannot be captured.
function State:compile(...)
   if busy(self) then return self.f(...) end
   if self.attempts >= ATTEMPTS then return eager(self, ...) end
   local other = share.find(self, ...)
   if other then return self:adopt(other).fn(...) end
   local ctx, emitter = evaluated(self, ...)
   if not ctx then return eager(self, ...) end
   return enter(self, ctx, emitter, ...)
end

--- Different kernel texts of all entries with free sizes: the C compiler ran for each at most once.
function State:texts()
   local n = 0
   for _, entry in ipairs(self.entries) do n = n + (entry.family and entry.family:texts() or 0) end
   return n
end

-- Plans of an entry with free sizes --------------------------------------------------------------------------------------------

--- The entry's plan for the geometry that the emitter saw. False when its own guard does not hold for it.
function State:addPlan(entry, emitter, handle)
   local args, n = emitter:keyArguments()
   local slot, asked = C.guardKey(entry.guard, unpack(args, 1, n))
   if not slot then return false end
   entry.plans = (entry.plans or 0) + 1
   if entry.plans > PLANS and entry.plans > asked / 2 and not self.refused then -- evaluating each call would be slower than eager
      self.refused = true
      warn(('%s got other sizes or numbers in most of %d calls and runs eagerly now for new ones; %s'):format(self.name, asked,
         table.concat(sizes.describe(entry.ctx), '; ')))
   end
   entry.P[slot], entry.Hs[slot] = handle or false, emit.holeValues(emitter)
   self:count 'plans'
   return true
end

-- The entry that was captured again, with a plan for these sizes now; nil when there is none.
local function another(self, ctx, emitter)
   for _, entry in ipairs(self.entries) do
      if entry.identity and emit.same(entry.identity, emitter) then
         local ok, _, handle = compileGraph(ctx, emitter, self.opts, entry.family)
         if ok and self:addPlan(entry, emitter, handle) then
            log.log(1, '%s: a plan for other sizes', self.name)
            return entry
         end
         return
      end
   end
end

--- The guards of an entry hold, but it has no plan for these sizes: the call is evaluated with them.
function State:extend(old, ...)
   if busy(self) then return self.f(...) end
   if self.attempts >= ATTEMPTS or self.refused then return eager(self, ...) end
   local ctx, emitter = evaluated(self, ...)
   if not ctx then return eager(self, ...) end
   local entry = another(self, ctx, emitter)
   if entry then
      release(ctx)
      return entry.fn(...)
   end
   local why = reasonOf(sizes.difference(old.ctx, ctx) or {kind = 'tensors', was = 'sizes of another path', now = 'others'})
   if self:full(why) then return eager(self, ...) end
   self:because(why)
   return enter(self, ctx, emitter, ...)
end

-- Marks what a failed guard read, so that the next capture treats it as changing.
function State:mark(g)
   local id = g.src and g.src.id
   if not id then return end
   local texts = self.marks.texts
   if texts and g.kind == 'eq' and type(g.value) == 'string' then texts[id] = (texts[id] or 0) + 1 end
   if g.kind == 'eq' and (type(g.value) == 'number' or g.value == nil) then
      self.marks.dyn[id] = true
      self.marks.values[id] = (self.marks.values[id] or 0) + 1
   elseif g.kind == 'len' then self.marks.dyn[value.length(g.src).id] = true
   elseif g.kind == 'ident' and g.what == 'table' then self.marks.struct[id] = true
   elseif g.kind == 'ident' and g.what == 'function' then self.marks.proto[id] = true end
end

-- Guards of an entry that fail for this call, as far as they can be run: list of {guard, value}.
function State:failing(entry, ...)
   local ok, list = pcall(function(...)
      entry.diagnose = entry.diagnose or checks.diagnose(entry.ctx, self.proto)
      return entry.diagnose(...)
   end, ...)
   return ok and list or {}
end

-- How far an entry is from a call by its failing guards: infinite when some could not be run, far when a branch went the other way.
local function distance(list)
   if #list == 0 or not guard.goesOn(list[#list][1]) then return math.huge end
   local d = #list
   for _, failed in ipairs(list) do d = d + (failed[1].kind == 'test' and 1000 or 0) end
   return d
end

-- The entry that fits the call best, and its failing guards: an entry of another path says nothing about what changed on this one.
function State:nearest(entry, ...)
   local best, list = entry, self:failing(entry, ...)
   for _, other in ipairs(self.entries) do
      local l = other ~= entry and self:failing(other, ...) or {}
      if distance(l) < distance(list) then best, list = other, l end
   end
   return best, list
end

--- Why no entry fits a call: the guards that fail in the nearest one, the first of them as a reason, and the guard. entry, i: the first that was tried.
function State:why(entry, i, ...)
   local near, list = self:nearest(entry, ...)
   local g = list[1] and list[1][1] or entry.guards[i]
   entry = near
   local r = reasonOf(g)
   local first = list[1]
   if first and first[1].kind == g.kind then
      if g.kind == 'tensors' then r.name, r.was, r.now = tensors.difference(entry.ctx, first[2])
      else r.was, r.now = guard.difference(g, first[2]) end
   end
   return list, r, g
end

-- Sizes that differ from those of some entry.
function State:learnSizes(...)
   if self.opts.dynamic == false then return end
   for _, entry in ipairs(self.entries) do
      for _, other in ipairs(self:failing(entry, ...)) do
         if other[1].kind == 'tensors' then sizes.learn(self.marks, entry.ctx, other[2]) end
      end
   end
end

function State:learn(entry, i, ...)
   local list, reason, g = self:why(entry, i, ...)
   self:mark(g)
   for _, other in ipairs(list) do self:mark(other[1]) end
   self:learnSizes(...)
   self:because(reason)
end

-- Writes down why another entry is made, and does what options.onRecompile says.
function State:because(reason)
   self.reasons[#self.reasons + 1] = reason
   log.log(3, 'recompiles %s: %s', self.name, tostring(reason))
   local react = self.opts.onRecompile
   if type(react) == 'function' then react(tostring(reason))
   elseif react == 'warn' then warn(('%s is compiled again, because another value came for: %s'):format(self.name, tostring(reason)))
   elseif react == 'error' then
      error(('[compile] recompile of %s; another value came for: %s; %s (options.onRecompile is error)'):format(self.name, tostring(reason), reason.advice), 0)
   end
end

-- True when another entry may not be made: at the limit, which is said once, as an error where the options ask for one. reason: or a function of it.
function State:full(reason)
   if self.opts.onRecompile == 'eager' then return true end
   if #self.entries < LIMIT then return false end
   self:count 'limit'
   if self.stats.limit >= LIMIT then self.refused = true end -- no call is evaluated any more to find out
   if self.limited then return true end
   self.limited = true
   if type(reason) == 'function' then reason = reason() end
   local text = ('%s was compiled %d times and runs eagerly now when none of them fits; what changes is: %s; %s'):format(self.name, LIMIT, tostring(reason),
      reason.advice)
   warn(text)
   if self.opts.fullgraph or self.opts.onRecompile == 'error' then error('[compile] ' .. text, 0) end
   return true
end

-- Every entry missed.
function State:exhausted(entry, i, ...)
   local args, n = {...}, select('#', ...)
   if self:full(function() return select(2, self:why(entry, i, unpack(args, 1, n))) end) then return eager(self, ...) end
   self:learn(entry, i, ...)
   return self:compile(...)
end

local function finish(self, ...)
   self.tried = nil
   return ...
end

--- Called by an entry whose guard i failed, or (0) that has no plan for these sizes.
function State:missed(entry, i, ...)
   entry.misses = (entry.misses or 0) + 1
   local tried = self.tried or {first = entry, i = i}
   if i == 0 then tried.unkeyed = tried.unkeyed or entry end
   tried[entry] = true
   self.tried = tried
   for k, other in ipairs(self.entries) do
      if not tried[other] then
         table.remove(self.entries, k)
         table.insert(self.entries, 1, other)
         trial.enter(self, other.fn)
         if other.leaves then return other.fn(...) end -- it clears self.tried itself, before the program's own code runs
         return finish(self, other.fn(...))
      end
   end
   self.tried = nil
   if tried.unkeyed then return self:extend(tried.unkeyed, ...) end
   return self:exhausted(tried.first, tried.i, ...)
end

-- Parts: what is compiled behind and inside of graph breaks --------------------------------------------------------------------

-- A list of what is kept per function and instruction.
local function slot(parts, f, key)
   parts[f] = parts[f] or {}
   return parts[f], key
end

-- Compiles a part of this function; f itself when there are too many.
function State:part(f, name, proto, generic, boxed)
   local root = self.root
   if root.parts >= PARTS then return f end
   root.parts = root.parts + 1
   local w = M.compile(f, self.opts, proto, generic)
   local s = M.states[w]
   s.root, s.name, s.marks.texts = root, name or s.name, {}
   s.boxed = boxed and {}
   for _, slotNumber in ipairs(boxed or {}) do s.boxed[slotNumber] = true end
   root.family[#root.family + 1] = s
   return w, s.marks
end

--- What runs instruction pc of a prototype in the real VM, in an environment (see resume.step).
function State:step(p, pc, env)
   local list, key = slot(self.root.steps, p, pc)
   if list[key] == nil or list[key] and list[key].env ~= env then
      local s = resume.step(p, pc, env)
      if s then s.env = env end
      list[key] = s or false
   end
   return list[key] or nil
end

--- The resume function of f (nil: of any closure of prototype p, which is given as the first argument) at instruction pc: resume.rest's table
-- with fn and marks; nil when there can be none. pending: it takes the results of the instruction before; boxed: sorted slots that hold cells;
-- eagerly: it is not compiled.
function State:rest(f, p, pc, pending, boxed, eagerly)
   local list, key = slot(self.root.rests, f or p, pc .. (pending and 'p' or '') .. (eagerly and 'e' or '') .. ':' .. table.concat(boxed or {}, ','))
   if list[key] ~= nil then return list[key] or nil end
   local r = resume.rest(p, pc, pending, boxed)
   list[key] = r or false
   if not r then return end
   r.origin.f, r.generic = f, f == nil
   local make = r.make
   r.fn = f and make(f) or function(g, ...) return make(g)(...) end
   if eagerly then return r end
   r.fn, r.marks = self:part(r.fn, bytecode.where(p, pc), r.proto, r.generic, boxed)
   for _, i in ipairs(p.code) do
      if i.op == 'FORL' and r.marks then r.marks.dyn['a' .. i.a + 1] = true end
   end
   return r
end

--- The compiled form of a Lua function that a breaking call enters.
function State:child(f)
   local children = self.root.children
   if call.disabled[f] or call.models[f] or call.wrapped[f] then return f end
   children[f] = children[f] or (self:part(f))
   return children[f]
end

-- Wrappers ---------------------------------------------------------------------------------------------------------------------

local function wrapper(state)
   local names = {}
   if state.generic then names[1] = 'a0' end
   for i = 1, state.proto.params do names[#names + 1] = 'a' .. i end
   if state.proto.vararg then names[#names + 1] = '...' end
   local list = table.concat(names, ', ')
   return loadstring(('local S = ... return function(%s) return S.top(%s) end'):format(list, list), '=compiled')(state)
end

--- The compiled form of a Lua function. proto: what it runs, when it is known; generic: f runs the closure of proto that is its first argument.
function M.compile(f, opts, proto, generic)
   if M.states[f] then return f end
   proto = proto or bytecode.of(f)
   if not proto then error('[compile] function; got a C function, need one written in Lua', 3) end
   local state = setmetatable({f = f, opts = opts or {}, proto = proto, generic = generic, entries = {}, attempts = 0, breaks = {}, reasons = {},
      stats = {}, marks = sizes.marks(), name = bytecode.where(proto, 1)}, State)
   state:forget()
   state.name = ('%s'):format(bytecode.where({chunk = proto.chunk, firstline = proto.firstline}, 0))
   local function first(...) return state:compile(...) end
   state.top, state.first = first, first
   local w = wrapper(state)
   M.made[w] = true
   return w
end

-- Parts of a function that is compiled by itself; a part's root is the function that it belongs to.
function State:forget()
   self.root, self.parts, self.family, self.children, self.steps, self.rests = self, 0, {}, {}, {}, {}
end

--- Forgets all entries of a compiled function.
function State:reset()
   self:forget()
   self.entries, self.attempts, self.breaks, self.reasons, self.stats = {}, 0, {}, {}, {}
   self.marks, self.limited, self.refused, self.tried = sizes.marks(), nil, nil, nil
   self.top, self.trial, self.small = self.first, nil, nil
end

M.compileGraph = compileGraph
return M
