-- Records of modules: what a captured forward leaves for a backward outside (the tape's side table in a capture -> units of the joint graph; a record
-- that a compiled forward left -> leaves and a result whose gradient runs the compiled backward).
--
--   1. nn.tape keeps, by module, the leaves and the result that forward put on the tape. In captured code these are fakes; here each becomes a unit of the
--      joint graph (see history.lua), and the side table gets {pending, k, x, ...}: what the run saved, the unit, the input as it was.
--      Where only records leave, the plan holds all of it in one object, which is the entry until somebody reads it (`open`).
--   2. nn.tape makes leaves anew from such an entry and asks `attach` for the result. Outside, the result's gradient runs the unit's part of the backward
--      plan; in captured code the part goes into the graph, so that a compiled backward is one plan over what the compiled forward saved.
--   3. A record whose backward is inside as well is dropped, as it would keep values alive that nobody asks for; the next backward runs the module again.
--      Modules that may not run again (random numbers, statistics) keep theirs, computed again from what leaves anyway.

local call = require 'relume.jit.call'
local value = require 'relume.jit.value'
local Context = require 'relume.jit.context'
local okC, C = pcall(require, 'relume.core')

local M = {}

-- Collecting -------------------------------------------------------------------------------------------------------------------

local function fieldOf(v, name)
   local x = v.f[name]
   return x and not (x.k == 'const' and x.v == nil) and x or nil
end

-- The tensors of a result (nested tables in order) that are on the tape, and its shape.
local function results(v, list)
   if v.k == 'tensor' and v.fake then
      local name, grad, sizes = C.tensorFacts(v.fake)
      if grad then list[#list + 1] = v.fake end
      return {type = name, sizes = sizes, grad = grad}
   elseif v.k == 'table' and not v.real then
      local shape = {list = true}
      for i = 1, #v.shadow do
         local s = results(v.f[i], list)
         if not s then return end
         shape[i] = s
      end
      return shape
   end
end

-- The input of a record as the program will see it: aliases in place of the leaves.
local function aliasOf(v)
   if v.k == 'tensor' and v.fake and not v.src then return {k = 'tensor', fake = v.fake:detach()} end
   if v.k ~= 'table' or v.real then return v end
   local t = value.newTable()
   for _, key in ipairs(v.order) do
      t.f[key], t.d[key], t.shadow[key], t.order[#t.order + 1] = aliasOf(v.f[key]), true, true, key
   end
   return t
end

local function leaves(v)
   local list = {}
   for i = 1, #v.shadow do
      local x = v.f[i]
      if x.k ~= 'tensor' or not x.fake then return end
      list[i] = {fake = x.fake, at = i}
   end
   return list
end

-- A record as a unit, nil when it has nothing for a backward outside.
local function unitOf(ctx, t, module, v)
   if v.k ~= 'table' or v.real or type(module) ~= 'table' then return end
   if module.train == false and not (t.unread and t.unread[module]) then return end
   local inside = not (t.fresh and t.fresh[module])
   if inside and (ctx.opts.outputs == false or not module.lastForward) then return end
   local y, xs, x, off = fieldOf(v, 'y'), fieldOf(v, 'xs'), fieldOf(v, 'x'), fieldOf(v, 'off')
   if not y or not xs or not x or off and off.v == true or #xs.shadow == 0 then return end
   local once = module.lastForward or t.unread and t.unread[module]
   local u = {record = v, once = once and not inside, ys = {}, xs = {}, fakes = {}, replay = inside, targets = leaves(xs)}
   u.shape = results(y, u.fakes)
   if not u.shape or not u.targets or #u.fakes == 0 then return end
   u.x, u.source, u.target = aliasOf(x), fieldOf(v, 'target') and v.f.source, fieldOf(v, 'target')
   return u
end

--- Finds the records that stay: ctx.kept, by value.
function M.collect(ctx)
   for _, t in ipairs(ctx.touched) do
      if ctx:isTape(t) then
         for _, key in ipairs(t.order) do
            local u = not (ctx.valueKeys and ctx.valueKeys[key]) and unitOf(ctx, t, key, t.f[key])
            if u then
               ctx.kept = ctx.kept or {}
               ctx.kept[t.f[key]] = u
               table.insert(ctx.kept, u)
            end
         end
      end
   end
end

--- Drops a record whose gradient cannot be recorded: the module runs again, if it may. True when it was dropped.
function M.drop(ctx, unit)
   if not unit.record or unit.once then return false end
   ctx.kept[unit.record] = nil
   return true
end

--- Adds the records to the joint graph's units.
function M.units(ctx, j)
   for _, u in ipairs(ctx.kept or {}) do
      for i, fake in ipairs(u.fakes) do
         j.ys[#j.ys + 1] = {fake = fake, record = true, reads = {}}
         u.ys[i] = #j.ys
      end
      u.fakes = nil
      j.units[#j.units + 1] = u
      u.k, j.records = #j.units, true
      j.replay = j.replay or u.replay and not C.randomSequential() or nil
   end
end

-- Outside ----------------------------------------------------------------------------------------------------------------------

-- A result of a given shape; it has no memory of its own, as nobody reads its values.
local function result(shape, list)
   if shape.list then
      local r = {}
      for i, s in ipairs(shape) do r[i] = result(s, list) end
      return r
   end
   local y = (C.constructors[shape.type] or require 'torch'[shape.type:match '[^.]+$'])(1):zero()
   if #shape.sizes == 0 then y = C.op.as_strided(y, {}, {}, 0)
   else y = y:view(unpack(shape.sizes and M.ones(#shape.sizes))):expand(unpack(shape.sizes)) end
   if shape.grad then
      y = y:detach()
      list[#list + 1] = y
   end
   return y
end

--- n times 1.
function M.ones(n)
   local r = {}
   for i = 1, n do r[i] = 1 end
   return r
end

local opened = setmetatable({}, {__mode = 'k'}) -- what a plan held -> what its records share

--- Lets plans hold what their runs leave; units know their module.
function M.owner(p)
   p.at, p.open = setmetatable({}, {__mode = 'k'}), M.open
   for k, u in ipairs(p.j.units) do
      if u.module then p.at[u.module], u.module = k, nil end
   end
end

--- A record in the form that the rest of this file reads: {pending, k, x, ...}.
function M.open(record, module)
   if record == nil then return end
   local bare = type(record) == 'userdata'
   local held = bare and record or record.held
   if not held then return record end
   local pending = opened[held]
   if not pending then
      local p, outs, numbers, mark = C.planHeld(held)
      pending = {outs = outs, numbers = numbers, mark = mark, desc = p, saved = {}, inputs = {}, copies = {}, attach = M.attach}
      for k = 1, #p.saved do pending.saved[k] = outs[p.j.nout + k] end
      opened[held] = pending
   end
   local k = bare and pending.desc.at[module] or record.k
   local r = {pending = pending, k = k, x = not bare and record.x or pending.outs[pending.desc.j.units[k].out]}
   if not bare then r.source, r.target, r.loss = record.source, record.target, record.loss end
   return r
end

--- The result of a record: its gradient with respect to the leaves xs runs the backward plan.
function M.attach(record, xs)
   local history = require 'relume.jit.history'
   local held, k = record.pending, record.k
   local unit, used, ys = held.desc.j.units[k], {}, {}
   local y = result(unit.shape, ys)
   for i, x in ipairs(unit.xs) do used[i] = xs[x.at] end
   local n = #ys -- not ys: see node in history.lua
   C.custom(used, ys, function(...)
      local dys = {...}
      return history.first(held.desc, held, k, history.given(dys, n), dys)
   end, true)
   return y
end

-- In captured code -------------------------------------------------------------------------------------------------------------

-- A field of a table that capture trusts.
local function trusted(ctx, t, name)
   local v = ctx:wrap(rawget(t.real, name), value.field(t.src, name))
   if v.k == 'table' then v.g = true end
   return v
end

-- What an outside record says in this call. module: the source of the key, if it is loaded.
function Context:readRecord(raw, key, src, module)
   local ctx = self
   local record = ctx:wrap(M.open(raw, key), value.opened(src, module or key))
   record.g = true
   local token = trusted(ctx, record, 'pending')
   record.f.pending, record.orig.pending = token, token
   local desc = token.real.desc
   ctx:guard {kind = 'ident', src = value.field(token.src, 'desc'), value = desc, what = 'plan'}
   return record
end

-- The part of the backward for these gradients, recorded into the graph.
local function inlined(ctx, token, k, dys)
   local history = require 'relume.jit.history'
   local p = token.real.desc
   local unit = p.j.units[k]
   local b = history.part(p, k, history.given(dys, #unit.ys))
   local used, saved, args, numbers, n = b.graph:used(), trusted(ctx, token, 'saved'), {}, {}, #p.saved
   local _, _, _, draws = b.graph:sizes()
   if draws > 0 then ctx:brk('history', 'random numbers of an earlier step') end
   for i = 1, n do args[i] = used[i] and ctx:fake(trusted(ctx, saved, i)) or false end
   for i = 1, #unit.ys do
      if dys[i] then
         n = n + 1
         args[n] = history.dense(dys[i])
      end
   end
   if p.nnumbers > 0 then ctx:brk('history', 'numbers of an earlier call') end
   return history.spread({b.graph:inline(args, numbers)}, b.gone, unit.from, #unit.xs)
end

if not okC then return M end

call.models[M.attach] = function(ctx, args)
   local record, xsv = args[1], args[2]
   local token, k = record.f.pending, ctx:specialise(ctx:rawget(record, 'k'))
   ctx:location()
   local unit, all, xs, ys = token.real.desc.j.units[k], {}, {}, {}
   for i = 1, ctx:rawlen(xsv) do all[i] = ctx:fake(ctx:rawget(xsv, i)) end
   for i, x in ipairs(unit.xs) do xs[i] = all[x.at] end
   local y = result(unit.shape, ys)
   local held = {ctx = ctx}
   ctx.callbacks = ctx.callbacks or {}
   table.insert(ctx.callbacks, held)
   C.custom(xs, ys, function(...) return inlined(held.ctx, token, k, {...}) end, true)
   return {ctx:result(y), n = 1}
end

return M
