-- History: tensors with a gradient that leave captured code (context -> joint graph -> a forward and a backward plan).
--
--   1. After capture the fakes that leave carry the tape that eager would have left. Their gradients are recorded behind them, in the same graph, for
--      cotangents that become new inputs: the joint graph. A minimal cut splits it; what is cut is saved.
--   2. A run calls the forward plan and puts custom nodes on the real outputs, with the inputs that want a gradient as their inputs. Outputs that others
--      were made of come first: there is one node a level, and a level's gradients stop at the outputs below. A node's backward runs its part of the
--      backward plan, built at its first use.
--   3. A view that leaves beside its base is taken of the base's real result, so that later writes reach both. An input that was written in place takes
--      its new history as after an op in place.
--   4. Where eager would hold a value that the program can change, the program is told when it did, as by eager; where eager would not, a copy is saved.
--   5. A gradient that is itself differentiated runs the joint graph op by op on the tape, from the inputs as they were.

local breaks = require 'relume.jit.breaks'
local records = require 'relume.jit.records'
local okC, C = pcall(require, 'relume.core')

local M = {}
local PARTIAL = {retain = true, allowUnused = true, stop = true}
local UNCHECKED = {retain = true, allowUnused = true, unchecked = true} -- as modules take their gradients
local MAXOUT = 250
local concat = table.concat

-- Joint graph ------------------------------------------------------------------------------------------------------------------

local function escape(ctx, text) ctx:brk('grad-escapes', text) end

local function key(pointer) return tostring(pointer) end

-- Input values by the address of their fake.
local function inputsByAddress(ctx)
   local at = {}
   for _, v in ipairs(ctx.inputs) do
      local _, own = C.history(v.fake)
      at[key(own)] = v
   end
   return at
end

-- Escaping fakes sorted by what they are: leaves, views of inputs, and groups that share a base.
local function sortEscapes(ctx, j)
   local inputs, groups, order, leafAt = inputsByAddress(ctx), {}, {}, {}
   for _, e in ipairs(ctx.escapes or {}) do
      local fn, own = C.history(e.fake)
      if not fn then
         j.leaves[#j.leaves + 1] = e
         leafAt[key(own)] = e
      end
   end
   for _, e in ipairs(ctx.escapes or {}) do
      local fn, own, _, base, tensor = C.history(e.fake)
      if fn and base and leafAt[key(base)] then
         j.views[#j.views + 1] = {index = e.index, fake = e.fake, out = leafAt[key(base)].index}
      elseif not fn then -- luacheck: ignore
         -- a leaf
      elseif base and inputs[key(base)] then
         j.views[#j.views + 1] = {index = e.index, fake = e.fake, arg = inputs[key(base)].index}
      else
         local id = key(base or own)
         if not groups[id] then
            groups[id] = {base = tensor}
            order[#order + 1] = groups[id]
         end
         local g = groups[id]
         g[#g + 1] = e
         if not base then g.primary = e end
         g.base = g.base or tensor
      end
   end
   return order
end

-- One custom output a group; its other members are views of that one.
local function takeGroup(ctx, j, g)
   local first = g.primary or #g == 1 and g[1]
   if not first then
      ctx.graph:output(g.base)
      ctx.outputs.n = ctx.outputs.n + 1
      first = {index = ctx.outputs.n, fake = g.base}
      ctx.outputs[ctx.outputs.n] = first
   end
   j.ys[#j.ys + 1] = {fake = first.fake, out = first.index}
   for _, e in ipairs(g) do
      if e ~= first then j.views[#j.views + 1] = {index = e.index, fake = e.fake, out = first.index} end
   end
end

-- Inputs whose history was changed in place.
local function takeRewritten(ctx, j)
   for _, v in ipairs(ctx.rewritten or {}) do
      for _, other in ipairs(ctx.inputs) do
         if other ~= v and other.facts.storage == v.facts.storage then escape(ctx, v.src.text .. ' shares memory with another tensor and is written') end
      end
      if C.history(v.fake) then j.ys[#j.ys + 1] = {fake = v.fake, arg = v.index}
      else j.dropped[#j.dropped + 1] = {arg = v.index, leaf = v.fake:requiresGrad()} end
   end
end

-- Tensors that the gradients go to.
local function targets(ctx, j)
   for _, v in ipairs(ctx.inputs) do
      local leaf = v.leaf or v.fake
      if leaf:requiresGrad() and not C.history(leaf) then
         j.xs[#j.xs + 1] = {fake = leaf, arg = v.index, flag = not v.facts.requiresGrad or nil}
      end
   end
   for _, e in ipairs(j.leaves) do j.xs[#j.xs + 1] = {fake = e.fake, out = e.index} end
end

local function list(items)
   local r = {}
   for i, x in ipairs(items) do r[i] = x.fake end
   return r
end

-- Which inputs and outputs eager holds for the gradient: those may be saved as they are. Each result knows which of them its own gradient reads, by
-- number: inputs, then outputs.
local function keeps(ctx, j)
   local nin, memory = #ctx.inputs, {}
   for i, v in ipairs(ctx.inputs) do j.keepIn[i], memory[i] = false, v.leaf or v.fake end
   for i = 1, j.nout do j.keepOut[i], memory[nin + i] = false, ctx.outputs[i].fake end
   for _, y in ipairs(j.ys) do
      y.reads = {}
      for i, held in ipairs(C.heldOf({y.fake}, memory)) do
         if held then
            if i <= nin then j.keepIn[i] = true else j.keepOut[i - nin] = true end
            if not y.record then y.reads[i] = true end -- modules take their gradients unchecked
         end
      end
   end
end

-- Units of the results: by level, above those that they were made of, and in a level those that share a part of their history, as a backward of one
-- frees what the others need.
local function levels(ctx, j, ys)
   local level, above, seen = {}, {}, {}
   for k, y in ipairs(ys) do
      local fn, _, out = C.history(y)
      local id = key(fn) .. ' ' .. out
      if seen[id] then escape(ctx, 'one value in two tensors') end
      seen[id], above[k] = true, C.reaches(y, ys)
   end
   local function of(k)
      if not level[k] then
         level[k] = 1
         for i, yes in ipairs(above[k]) do
            if yes then level[k] = math.max(level[k], of(i) + 1) end
         end
      end
      return level[k]
   end
   local outside, found, units = {}, {}, {}
   for _, v in ipairs(ctx.inputs) do outside[#outside + 1] = v.entry end
   for k, group in ipairs(C.historyGroups(ys, outside)) do
      local id = of(k) .. ' ' .. group
      if not found[id] then
         found[id] = {ys = {}, xs = {}, node = true, level = of(k), first = k}
         units[#units + 1] = found[id]
      end
      table.insert(found[id].ys, k)
   end
   table.sort(units, function(x, y) return x.level < y.level or x.level == y.level and x.first < y.first end)
   for i, u in ipairs(units) do j.units[i] = u end
   local views = list(j.views)
   for _, y in ipairs(ys) do
      for _, yes in ipairs(C.reaches(y, views)) do
         if yes then escape(ctx, 'a view and what was made of it') end
      end
   end
end

-- What capture knows of the program's state: the gradients must not add to it, as the guards and effects are written already.
local function stateOf(ctx)
   local n = #ctx.inputs + #ctx.numbers + #ctx.touched + #ctx.touchedCells
   for _, t in ipairs(ctx.touched) do n = n + #t.order end
   return n
end

-- Records the gradients of a unit: of a level for what is below it and for the leaves, of a module's record for its own leaves.
local function gradients(ctx, j, level, below, dys)
   local xs, ys, d = {unpack(level.record and level.targets or below)}, {}, {}
   if level.node then
      for _, x in ipairs(j.xs) do xs[#xs + 1] = x end
   end
   for i, k in ipairs(level.ys) do ys[i], d[i] = j.ys[k].fake, dys[k] end
   local ok, dxs = pcall(C.grad, ys, list(xs), d, level.node and PARTIAL or UNCHECKED)
   if not ok then
      if records.drop(ctx, level) then return end
      if breaks.is(dxs) then error(dxs, 0) end
      escape(ctx, breaks.isRaised(dxs) and tostring(dxs.value.v) or tostring(dxs))
   end
   level.from = j.ngrads
   for i, x in ipairs(xs) do
      if dxs[i] then
         ctx.graph:output(dxs[i])
         j.ngrads = j.ngrads + 1
         level.xs[#level.xs + 1] = x
      end
   end
   for _, k in ipairs(level.node and level.ys or {}) do below[#below + 1] = j.ys[k] end
end

local function allGradients(ctx, j, ys)
   local dys, below, before = {}, {}, stateOf(ctx)
   for i, y in ipairs(ys) do dys[i] = ctx.graph:cotangent(y) end
   for _, unit in ipairs(j.units) do gradients(ctx, j, unit, below, dys) end
   if stateOf(ctx) ~= before then escape(ctx, 'a backward written in Lua changes the program or reads other tensors') end
end

--- Whether our own plan can hold what a run leaves by itself: only modules' records leave, nothing is put on the tape.
function M.holds(ctx, j)
   local backend = ctx.opts.backend
   if backend and backend ~= 'c' or #j.leaves + #j.views + #j.dropped > 0 or not j.records then return false end
   for _, y in ipairs(j.ys) do
      if not y.record then return false end
   end
   return true
end

--- Records the gradients of what leaves, behind the forward; ctx.joint says what is what. The context's outputs are complete.
function M.joint(ctx)
   local j = {ys = {}, xs = {}, leaves = {}, views = {}, dropped = {}, keepIn = {}, keepOut = {}, units = {}, ngrads = 0}
   ctx.outputs = ctx.outputs or {n = 0}
   j.user = ctx.outputs.n
   for _, g in ipairs(sortEscapes(ctx, j)) do takeGroup(ctx, j, g) end
   takeRewritten(ctx, j)
   targets(ctx, j)
   if #j.ys > MAXOUT then escape(ctx, #j.ys .. ' tensors') end
   j.nout = ctx.outputs.n
   levels(ctx, j, list(j.ys))
   records.units(ctx, j)
   keeps(ctx, j)
   allGradients(ctx, j, list(j.ys))
   j.holds = M.holds(ctx, j)
   ctx.joint = j
end

-- Plans ------------------------------------------------------------------------------------------------------------------------

-- Inputs that the forward changes and whose old values the gradients read: copied before the run, for gradients of gradients.
local function originals(ctx, joint, j)
   local nodes, ends = joint:walk()
   local need, changed, copies = {}, {}, {}
   for i = j.nout + 1, #ends.outputs do need[ends.outputs[i]] = true end
   for i = #nodes, 1, -1 do
      if need[nodes[i].ref] then
         for _, r in ipairs(nodes[i].inputs) do
            if r then need[r] = true end
         end
      end
   end
   for _, u in ipairs(ends.updates) do changed[nodes[u.input + 1].storage] = true end
   for i, v in ipairs(ctx.inputs) do
      local node = nodes[ends.inputs[i] + 1]
      if need[node.ref] and changed[node.storage] then
         if not v.real:isContiguous() or v.facts.offset ~= 0 then escape(ctx, v.src.text .. ' is changed in place') end
         copies[#copies + 1] = i
      end
   end
   return copies
end

-- The parts of a compiled forward and backward that every run shares.
local function plans(ctx, compile, whole)
   local j, g = ctx.joint, ctx.graph
   local full = g:passes(whole and 'functionalize' or 'all')
   local node = j.units[1] and j.units[1].node
   local how = j.records and {live = not node, replay = j.replay} or nil
   local fwd, bwd, saved = full:partition(j.nout, #j.ys, j.keepIn, j.keepOut, how)
   local _, _, updates = bwd:sizes()
   local _, _, writes, draws = full:sizes()
   if updates > 0 then escape(ctx, 'the gradient changes a tensor') end
   local p = {j = j, recorded = g, bwd = bwd, saved = saved, random = draws > 0, ninputs = #ctx.inputs, nnumbers = #ctx.numbers, parts = {},
      compile = compile, replay = draws > 0 and j.replay, node = node}
   p.copies = writes > 0 and p.node and originals(ctx, full, j) or {}
   p.facts = {}
   for i, v in ipairs(j.views) do p.facts[i] = {C.tensorFacts(v.fake)} end
   p.run, p.handle, p.plan = compile(fwd, ctx.inputs)
   return p
end

-- Lets go of the fakes.
local function strip(j)
   for _, l in ipairs {j.ys, j.xs, j.leaves, j.views} do
      for _, e in ipairs(l) do e.fake = nil end
   end
   for _, u in ipairs(j.units) do
      for _, x in ipairs(u.xs) do x.fake = nil end
      u.targets, u.record, u.x, u.source, u.target = nil, nil, nil, nil, nil
   end
   j.xs = nil
end

-- The backward of a unit for the results that got a gradient: {graph, gone by gradient, reads}. given: a character each.
local function part(p, l, given)
   local level, ny = p.j.units[l], #p.j.ys
   local id = l .. given
   local r = p.parts[id]
   if r then return r end
   local missing, reads, seen = {}, {}, {}
   for i = 1, #p.saved + ny do missing[i] = i > #p.saved end
   for i, k in ipairs(level.ys) do
      if given:byte(i) == 49 then
         missing[#p.saved + k] = false
         for w in pairs(p.j.ys[k].reads) do
            if not seen[w] then reads[#reads + 1] = w end
            seen[w] = true
         end
      end
   end
   local g, gone = p.bwd:absent(#p.saved + 1, missing)
   r = {graph = g, gone = gone, reads = reads, missing = missing}
   p.parts[id] = r
   return r
end
M.part = part

-- What runs a part, built at its first use.
local function runOf(p, r)
   if r.run then return r.run, r.handle end
   local n, inputs = r.graph:sizes(), {}
   for i = 1, n do inputs[i] = i end
   local ok, run, handle = pcall(p.compile, r.graph, inputs)
   if not ok then run = function(_, ...) return r.graph:run({unpack({...}, 1, n)}, {select(n + 1, ...)}) end end -- op by op
   r.run, r.handle = run, handle
   return run, handle
end

--- Which of n gradients are there, a character each.
function M.given(dys, n)
   local g = {}
   for i = 1, n do g[i] = dys[i] and '1' or '0' end
   return concat(g)
end

local function dense(dy)
   if dy:isContiguous() and dy:storageOffset() == 1 then return dy end
   return dy:clone()
end

local function changed(k, was, now)
   if not k then return end
   error(('[backward] a value saved for the gradient of a compiled function was changed in place; got version %d, need version %d'):format(now, was), 0)
end

-- The gradients of a level: results that are not gone are spread over its targets. from: outputs in front of the level's.
local function spread(r, gone, from, n)
   local out, at = {}, 0
   for i = 1, from + n do
      if not gone[i] then
         at = at + 1
         if i > from then out[i - from] = r[at] end
      end
   end
   return unpack(out, 1, n)
end

M.spread, M.dense = spread, dense

-- Gradients from the saved values.
local function first(p, held, l, given, dys)
   local level, b = p.j.units[l], part(p, l, given)
   if held.watch then changed(held.watch(b.reads)) end
   local n = #p.saved
   local args = {unpack(held.saved, 1, n)}
   for i = 1, #level.ys do
      if dys[i] then
         n = n + 1
         args[n] = dense(dys[i])
      end
   end
   for k = 1, p.nnumbers do args[n + k] = held.numbers[k] end
   local run, handle = runOf(p, b)
   if not p.replay then return spread({run(handle, unpack(args, 1, n + p.nnumbers))}, b.gone, level.from, #level.xs) end
   local now = C.randomSwap(held.mark)
   local r = {run(handle, unpack(args, 1, n + p.nnumbers))}
   C.randomSwap(now)
   return spread(r, b.gone, level.from, #level.xs)
end
M.first = first

-- The joint graph without writes, for gradients of gradients.
local function pure(p)
   p.joint = p.joint or p.recorded:passes 'functionalize'
   return p.joint
end

-- Gradients that are on the tape themselves.
local function second(p, held, l, given, dys)
   local level, b = p.j.units[l], part(p, l, given)
   changed(held.watch())
   local args, missing, n = {}, {}, p.ninputs
   for i = 1, n do args[i], missing[i] = held.copies[i] or held.inputs[i], false end
   for k = 1, #p.j.ys do missing[p.ninputs + k] = b.missing[#p.saved + k] end
   for i = 1, #level.ys do
      if dys[i] then
         n = n + 1
         args[n] = dense(dys[i])
      end
   end
   local g, gone = pure(p):absent(p.ninputs + 1, missing)
   return spread({g:run(args, held.numbers, held.mark or C.randomMark())}, gone, p.j.nout + level.from, #level.xs)
end

-- Attaching --------------------------------------------------------------------------------------------------------------------

local function pick(e, args, r) return e.arg and args[e.arg] or r[e.out] end

-- The custom node of a level.
local function node(p, held, l, args, r, made)
   local level, xs, ys = p.j.units[l], {}, {}
   for i, x in ipairs(level.xs) do
      xs[i] = made[x] or pick(x, args, r)
      if x.flag then xs[i]:requiresGrad(true) end
   end
   for i, k in ipairs(level.ys) do ys[i] = made[p.j.ys[k]] end
   local n = #ys -- the node keeps this function: with ys in it, results that no backward reaches would keep themselves
   C.custom(xs, ys, function(...)
      local dys = {...}
      local back = C.gradEnabled() and second or first
      return back(p, held, l, M.given(dys, n), dys)
   end, true)
end

local function attach(p, held, args, r)
   local j, made = p.j, {}
   local ys = {}
   for _, e in ipairs(j.leaves) do r[e.index]:requiresGrad(true) end
   for i, y in ipairs(j.ys) do
      ys[i] = y.arg and args[y.arg]:detach() or r[y.out]
      if not y.record then made[y] = ys[i] end
   end
   for l, unit in ipairs(j.units) do
      if unit.node then node(p, held, l, args, r, made) end
   end
   for i, y in ipairs(j.ys) do
      if y.arg then C.recordWrite(args[y.arg], ys[i]) end
   end
   for _, e in ipairs(j.dropped) do
      local x = args[e.arg]
      C.recordWrite(x, x:detach())
      if e.leaf then x:requiresGrad(true) end
   end
   for i, v in ipairs(j.views) do
      local f = p.facts[i]
      r[v.index] = C.op.as_strided(pick(v, args, r), f[3], f[4], f[5])
   end
end

local function aliases(args, n)
   local r = {}
   for i = 1, n do r[i] = args[i]:detach() end
   return r
end

-- What a run leaves for its backward.
local function hold(p, args, r, mark, copies)
   local held = {saved = {}, numbers = {}, inputs = {}, copies = copies, mark = mark, desc = p, attach = records.attach}
   for k = 1, #p.saved do held.saved[k] = r[p.j.nout + k] end
   for k = 1, p.nnumbers do held.numbers[k] = args[p.ninputs + k] end
   if not p.node then return held end
   local plain = aliases(args, p.ninputs)
   for i = 1, p.ninputs do held.inputs[i] = args[i]:requiresGrad() and args[i] or plain[i] end
   for i = 1, p.j.nout do plain[p.ninputs + i] = r[i] end
   held.watch = C.watch(unpack(plain))
   return held
end

local function called(f, ...) return f(...) end

--- What runs the captured function, what it is given first, and the forward plan. compile(graph, inputs) -> run, what it is given first, plan.
-- whole: the graphs keep the ops that were recorded, for those who run them op by op.
function M.compile(ctx, compile, whole)
   local p = plans(ctx, compile, whole)
   local run, handle, j = p.run, p.handle, p.j
   strip(j)
   if j.holds then
      records.owner(p)
      p.plan:holds(p, p.random)
      return p.plan.callTo, p.plan, p.plan
   end
   return called, function(...)
      local args, copies = {...}, {}
      local mark = p.random and C.randomMark()
      for _, i in ipairs(p.copies) do copies[i] = args[i]:clone() end
      local r = {run(handle, ...)}
      local held = #j.ys > 0 and hold(p, args, r, mark, copies)
      attach(p, held, args, r)
      r[j.nout + 1] = held
      return unpack(r, 1, j.nout + 1)
   end, p.plan
end

return okC and M or {}
