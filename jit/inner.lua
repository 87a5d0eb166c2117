-- Inner results: with {outputs = false} a step does not keep what its modules hold of a batch (sets of a finished capture -> those that stay).
--
--   1. An `output` or `gradInput` that a captured step only replaces is left as it was, so its values need no memory of their own and no store.
--   2. One that leaves by another name (returned, put into a table, kept by a closure) is set as always.
--   3. Where the step goes on outside (a graph break, a forward whose backward is outside), everything is kept: what comes may read it.
--   4. Records for a second backward of a forward whose backward was inside are not kept either (see records.lua).

local M = {}

local named = {output = true, gradInput = true}

-- Modules and criterions of the capture, and the tables that are their fields (nested ones too), by source.
local function holders(ctx)
   local real, isField, at = {}, {}, {}
   local function mark(t, depth)
      if type(t) ~= 'table' or isField[t] or depth > 8 then return end
      isField[t] = true
      for _, x in pairs(t) do mark(x, depth + 1) end
   end
   for _, t in ipairs(ctx.tables) do
      if type(t.real) == 'table' and t.src then
         real[t.src.id] = t.real
         if t.real.updateGradInput then
            for name in pairs(named) do
               if not torch.isTensor(rawget(t.real, name)) then mark(rawget(t.real, name), 0) end
            end
         end
      end
   end
   for id, t in pairs(real) do at[id] = isField[t] and 'field' or t.updateGradInput and 'module' or nil end
   return at
end

-- True for an output or gradInput of a module, also when it is one of several in a table.
local function ofModule(at, parent, key)
   local kind = parent and at[parent.id]
   return kind == 'field' or kind == 'module' and named[key] or false
end

-- Values by which results, tables and closures reach tensors, beside the fields above.
local function reached(ctx, at, results)
   local seen = {}
   local function visit(v)
      if not v or seen[v] then return end
      seen[v] = true
      if v.k == 'table' and not v.real then
         for _, key in ipairs(v.order) do visit(v.f[key]) end
         visit(v.meta)
      elseif v.k == 'func' then
         for _, c in ipairs(v.cells or {}) do visit(c.v) end
      end
   end
   for i = 1, results.n do visit(results[i]) end
   for _, t in ipairs(ctx.touched) do
      for _, key in ipairs(ctx:isTape(t) and {} or t.order) do -- of a tape's records none leaves here (rule 3)
         if t.f[key] ~= t.orig[key] and not ofModule(at, t.src, key) then visit(t.f[key]) end
      end
   end
   for _, t in ipairs(ctx.blind or {}) do
      for _, w in ipairs(t.blind or {}) do visit(w.v) end
   end
   for _, c in ipairs(ctx.touchedCells) do visit(c.v) end
   return seen
end

--- True when what modules hold may be dropped.
function M.drops(ctx)
   if ctx.opts.outputs ~= false or ctx.exit then return false end
   for _, u in ipairs(ctx.kept or {}) do
      if not u.replay then return false end
   end
   return true
end

--- The changes without the sets that rule 1 drops.
function M.stay(ctx, changes, results)
   if not M.drops(ctx) then return changes end
   local at, list = holders(ctx), {}
   local kept = reached(ctx, at, results)
   ctx.inner = {at = at, kept = kept}
   for _, c in ipairs(changes) do
      local src = c.v.src
      if c.kind ~= 'set' or kept[c.v] or src.kind ~= 'field' or not ofModule(at, src.parent, src.key) then list[#list + 1] = c end
   end
   return list
end

--- True for a write into a module's field that rule 1 drops: of what was made inside.
function M.skips(ctx, t, key, v)
   local made = (v.k == 'table' and not v.real or v.k == 'tensor') and not v.src
   return ctx.inner and made and not ctx.inner.kept[v] and ofModule(ctx.inner.at, t.src, key) or false
end

return M
