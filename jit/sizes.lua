-- Sizes that change: what is symbolic in a capture, and what a miss teaches about it (marks, facts -> free sizes, holes, keys).
--
--   1. A tensor whose size was seen to change at some dimension becomes an input with *free* sizes there; its strides, offset and storage size
--      are free too. An integer that changes and that an op needs as a size or an index becomes a number of the *key*.
--   2. Geometries of these inputs and numbers of the key together choose the plan. For a new key the closure is evaluated again, with its
--      guards known to hold: when the same function comes out, it gets one more plan, else it is an entry of its own.
--   3. Numbers that ops give while something is free are *holes*: values that each plan brings along (H[1], H[2] ...), so that the function's
--      text is the same for every key. Where the program's path needs a hole's value (the bound of a loop, a string, a table key), it is
--      *pinned*: the value goes into the text. Outcomes of comparisons go into it as well.
--   4. Sizes 0 and 1 are never free: broadcasting and empty tensors take other paths.

jit.off(true, true) -- each path is evaluated once: traces would not pay, and would push out the program's

local value = require 'relume.jit.value'
local Context = require 'relume.jit.context'
local breaks = require 'relume.jit.breaks'
local okC, C = pcall(require, 'relume.core')

local M = {}
local floor, huge = math.floor, math.huge
local BIG = 2 ^ 52
local marked = setmetatable({}, {__mode = 'k'}) -- tensor -> {[dimension] = {low, high}}
M.marked = marked

-- Marks ------------------------------------------------------------------------------------------------------------------------

--- Marks that a compiled function begins with. dyn, struct, proto: see context.lua; dims: by source, {[dimension] = {low, high, asked}};
-- geometry: by source, true when strides, offset or storage changed; window: when the offset did; fixed: when it matters all the same.
function M.marks() return {dyn = {}, values = {}, struct = {}, proto = {}, dims = {}, geometry = {}, window = {}, fixed = {}} end

local function checkRange(x, dim, low, high)
   if not okC or not C.torch.isTensor(x) then error(('[markDynamic] tensor; got %s, need a tensor'):format(type(x)), 3) end
   if type(dim) ~= 'number' or dim < 1 or dim > x:dim() or floor(dim) ~= dim then
      error(('[markDynamic] dimension; got %s, need 1 to %d'):format(tostring(dim), x:dim()), 3)
   end
   if low ~= nil and (type(low) ~= 'number' or low < 0) or high ~= nil and (type(high) ~= 'number' or high < (low or 2)) then
      error(('[markDynamic] range; got %s to %s, need 2 or more'):format(tostring(low), tostring(high)), 3)
   end
   local n = x:size(dim)
   if n < (low or 0) or n > (high or huge) then
      error(('[markDynamic] size of dimension %d; got %d, need %s to %s'):format(dim, n, tostring(low or 2), tostring(high or 'any')), 3)
   end
end

--- Says that the size of a tensor's dimension will change between calls: compiled functions treat it as symbolic from their first call on.
-- Sizes 0 and 1 are compiled by themselves. When a compiled function can only work for one size, its call raises an error.
-- @param x tensor
-- @param dim dimension, from 1
-- @param low, high smallest and largest size (optional); other sizes are compiled by themselves
-- @return x
function M.markDynamic(x, dim, low, high)
   checkRange(x, dim, low, high)
   marked[x] = marked[x] or {}
   marked[x][dim] = {math.max(low or 2, 2), high or BIG, true}
   return x
end

local function markDim(marks, id, d, range)
   marks.dims[id] = marks.dims[id] or {}
   local old = marks.dims[id][d]
   if not old or range[3] then marks.dims[id][d] = range end
end

-- What a changed tensor differs in from the one that was captured.
local function learnTensor(marks, src, old, x)
   local kind, grad, sizes, strides, offset, _, storageSize = C.tensorFacts(x)
   if kind ~= old.type or grad ~= old.requiresGrad or #sizes ~= #old.sizes then return end
   local resized, same = false, offset == old.offset and storageSize == old.storageSize
   for d = 1, #sizes do
      local a, b = sizes[d], old.sizes[d]
      if a ~= b then
         resized = true
         if a > 1 and b > 1 then markDim(marks, src.id, d, {2, BIG}) end
      end
      same = same and strides[d] == old.strides[d]
   end
   if offset ~= old.offset then marks.window[src.id] = true end
   if not resized and not same then marks.geometry[src.id] = true end
end

--- The check of the tensors failed: marks the sizes that differ from those of the captured inputs. list: the inputs of this call.
function M.learn(marks, ctx, list)
   for i, v in ipairs(ctx.inputs) do
      local x = list[i]
      if v.facts.sizes and okC and C.torch.isTensor(x) and not C.isFake(x) then learnTensor(marks, v.src, v.facts, x) end
   end
end

-- Inputs -----------------------------------------------------------------------------------------------------------------------

-- Tensors that options.dynamic = true makes symbolic: arguments, and what lies in plain tables that are arguments. Parameters of modules stay.
local function given(src)
   if src.kind == 'arg' or src.kind == 'vararg' then return true end
   return src.kind == 'field' and type(src.key) == 'number' and given(src.parent)
end

local function ranges(ctx, v)
   local marks, own = ctx.marks, marked[v.real]
   for d, range in pairs(own or {}) do markDim(marks, v.src.id, d, range) end
   local dims = marks.dims[v.src.id]
   if ctx.opts.dynamic == true and given(v.src) then
      local all = {}
      for d = 1, #v.facts.sizes do all[d] = dims and dims[d] or {2, BIG} end
      return all
   end
   return dims
end

--- Decides which sizes of a new input are free.
function Context:freeSizes(v)
   if self.opts.dynamic == false then return end
   local dims, free = ranges(self, v), {}
   for d, size in ipairs(v.facts.sizes) do
      local r = dims and dims[d]
      if r and size >= r[1] and size <= r[2] then
         free[#free + 1] = {d, r[1], r[2]}
         self.symbols[#self.symbols + 1] = {src = v.src, dim = d, low = r[1], high = r[2], asked = r[3], hint = size}
      end
   end
   if #free > 0 or self.marks.geometry[v.src.id] then
      v.facts.free = free
      self.dynamic = true
      v.facts.window = self:isWindow(v)
   end
end

-- Windows ----------------------------------------------------------------------------------------------------------------------

-- An input whose offset was seen to change (a batch out of the data) is taken as if its storage began with it, where nothing else lies there and
-- no gradients are kept: one plan serves all offsets.
function Context:isWindow(v)
   local id = v.src.id
   if not self.marks.window[id] or self.marks.fixed[id] or v.facts.requiresGrad or #v.facts.sizes == 0 then return end
   local backend = self.opts.backend
   if backend and backend ~= 'c' or not C.planCompiles() or v.facts.type:find 'Cuda' then return end
   for _, other in ipairs(self.inputs) do
      if other.facts.storage == v.facts.storage then return end
   end
   self.window = true
   return true
end

--- What begins again with a window as a part of its storage.
function Context:fixWindows()
   for _, v in ipairs(self.inputs) do
      if v.facts.window then self.marks.fixed[v.src.id] = true end
   end
   error(breaks.AGAIN, 0)
end

--- A new input lies in the storage of a window: then the window is none.
function Context:sharesWindow(v)
   if not self.window then return end
   for _, other in ipairs(self.inputs) do
      if other.facts.window and other.facts.storage == v.facts.storage then self:fixWindows() end
   end
end

-- Probes ---------------------------------------------------------------------------------------------------------------------

local function isPrime(n)
   for d = 2, math.sqrt(n) do
      if n % d == 0 then return false end
   end
   return n > 1
end

-- Another size in its place: a prime, the same for equal sizes.
local function other(size, low, high)
   for n = size + 1, math.min(2 * size + 2, high) do
      if isPrime(n) then return n end
   end
   for n = size - 1, low, -1 do
      if isPrime(n) then return n end
   end
end

--- In a probe (a capture made to see what follows the sizes): the sizes that an input with free ones is taken to have.
function Context:probeSizes(v)
   local free = self.opts.probing and v.facts.free
   if not free or #free == 0 then return end
   local list = {unpack(v.facts.sizes)}
   for _, d in ipairs(free) do list[d[1]] = other(list[d[1]], d[2], d[3]) or self:brk('internal', 'no other size') end
   if not v.real:isContiguous() then self:brk('internal', 'a probe of a window') end
   return list
end

-- Views that change ------------------------------------------------------------------------------------------------------------

local views = { -- name -> whether the number of arguments, the tensor included, is one of its
   narrow = function(n) return n == 4 end, select = function(n) return n == 3 end, sub = function(n) return n >= 3 and n % 2 == 1 end,
}

-- Number expressions of a view's arguments, and their values; nil when none changes or one is not known before the plan is.
local function viewNumbers(ctx, args)
   local exprs, hints, moves = {}, {}, false
   for i = 2, args.n do
      local a = args[i]
      if not value.isNumber(a) or a.k == 'num' and M.hasHole(a.e) then return end
      exprs[#exprs + 1], hints[#hints + 1] = value.expr(a), a.hint or a.v
      moves = moves or a.k == 'num' and ctx:changes(a)
   end
   if moves then return exprs, hints end
end

--- x:narrow(d, i, n) or x:select(d, i) of a tensor of the program that no op has looked at, at a number that changes: an input of its own, which the
-- generated function makes, so that one plan serves all numbers. Nil when it is something else.
function Context:outerView(f, name, args)
   local v = args[1]
   if not views[name] or not views[name](args.n) or v.k ~= 'tensor' or v.fake or not v.real or not v.src or self.opts.dynamic == false then return end
   if select(2, C.tensorFacts(v.real)) then return end
   local exprs, hints = viewNumbers(self, args)
   if not exprs then return end
   local src = value.view(v.src, f, name, exprs)
   if self.views[src.id] then return self.views[src.id] end
   local ok, x = pcall(C.unrecorded, f, v.real, unpack(hints))
   if not ok then return end
   for i = 2, args.n do self:needNum(args[i]) end
   self.marks.window[src.id], self.marks.geometry[src.id] = true, true
   self.views[src.id] = self:wrap(x, src)
   return self.views[src.id]
end

--- x[i] in the same way; flat: of a vector, the value is then the window of one element.
function Context:outerElement(v, key)
   if v.k ~= 'tensor' or v.fake or not v.real or key.k ~= 'num' or not self:changes(key) then return end
   local _, _, list = C.tensorFacts(v.real)
   local methods, one = debug.getmetatable(v.real), value.const(1)
   if #list > 1 then return self:outerView(methods.select, 'select', {v, one, key, n = 3}) end
   local view = #list == 1 and self:outerView(methods.narrow, 'narrow', {v, one, key, one, n = 4})
   if view then view.flat = true end
   return view or nil
end

-- Holes ------------------------------------------------------------------------------------------------------------------------

--- A value that may differ from plan to plan: its number.
function Context:holeOf(x, text)
   self.holes[#self.holes + 1] = {value = x, text = text, where = self:where()}
   return #self.holes
end

--- The number x that an op gave: a hole when it may depend on a free size.
function Context:sizeNumber(x)
   if not self.dynamic or self.folding then return value.const(x) end
   local i, name = self:holeOf(x, self.calling), self.calling
   return value.num({op = 'hole', i = i, hint = x, rank = name == 'dim' or name == 'nDimension'}, x)
end

--- A hole that x:size(d) of an input gave: remembers the symbol that it is.
function Context:nameSize(args, r)
   local v, d = args[1], args[2]
   if not self.dynamic or not v.src or not d or d.k ~= 'const' or r.k ~= 'num' then return end
   local h = self.holes[r.e.i]
   r.e.text = ('%s:size(%d)'):format(v.src.text, d.v)
   h.text = r.e.text
   for _, s in ipairs(self.symbols) do
      if s.src == v.src and s.dim == d.v then h.symbol = s end
   end
end

--- True when a number expression has a hole in it.
function M.hasHole(e)
   if e.op == 'hole' then return true end
   return e.a and M.hasHole(e.a) or e.b and M.hasHole(e.b) or false
end

--- True for a test of the number of dimensions, of which a report says nothing.
function M.isRank(g) return g.kind == 'test' and (g.a.rank and g.b.op == 'k' or g.b.rank and g.a.op == 'k') end

--- A hole's value decides where the program goes: it becomes part of the function's text.
function Context:pin(e)
   local h = self.holes[e.i]
   if h.pinned then return end
   h.pinned = true
   self:guard {kind = 'pin', hole = e.i, value = h.value, text = h.text}
end

-- Guards that compare sizes, or fix them.
local function sizeGuards(ctx)
   local list = {}
   for _, g in ipairs(ctx.guards) do
      if g.kind == 'pin' or g.kind == 'test' and (M.hasHole(g.a) or M.hasHole(g.b)) then list[#list + 1] = g end
   end
   return list
end

--- The first guard on sizes that came out otherwise in another capture of the same closure; nil when the paths part for another reason.
function M.difference(old, new)
   local a, b = sizeGuards(old), sizeGuards(new)
   for i, g in ipairs(b) do
      local o = a[i]
      if not o or o.kind ~= g.kind or o.where ~= g.where then return end
      if o.value ~= g.value then
         g.was, g.now = o.value, g.value
         return g
      end
   end
end

-- Marks that cannot hold ----------------------------------------------------------------------------------------------------

local function bound(s, op, k, holds, flipped)
   if op == 'eq' then
      if holds then s.from, s.to = k, k end
   elseif flipped then -- k < n, k <= n
      if op == 'lt' then k = floor(k) + 1 else k = math.ceil(k) end
      if holds then s.from = math.max(s.from, k) else s.to = math.min(s.to, k - 1) end
   else
      if op == 'lt' then k = math.ceil(k) - 1 else k = floor(k) end
      if holds then s.to = math.min(s.to, k) else s.from = math.max(s.from, k + 1) end
   end
end

local function symbolOf(ctx, e) return e.op == 'hole' and ctx.holes[e.i].symbol end

-- A guard narrows the sizes for which the function is right.
local function narrow(ctx, g)
   if g.kind == 'pin' then
      local s = ctx.holes[g.hole].symbol
      if s then s.from, s.to = g.value, g.value end
      return s
   end
   local a, b = symbolOf(ctx, g.a), symbolOf(ctx, g.b)
   if a and g.b.op == 'k' then bound(a, g.op, g.b.v, g.value, false) return a end
   if b and g.a.op == 'k' then bound(b, g.op, g.a.v, g.value, true) return b end
end

--- The first symbol that torch.markDynamic asked for and that has one size only, and the guard that says so; nil when all hold.
function M.broken(ctx)
   for _, s in ipairs(ctx.symbols) do s.from, s.to = s.low, s.high end
   for _, g in ipairs(sizeGuards(ctx)) do
      local s = narrow(ctx, g)
      if s and s.asked and s.from >= s.to then return s, g end
   end
end

-- Keys -------------------------------------------------------------------------------------------------------------------------

--- A loaded integer that changes becomes a number of the key.
function Context:keyNumber(e)
   if self.keyed[e.src.id] then return end
   self.keyed[e.src.id] = true
   self.keyNumbers[#self.keyNumbers + 1] = e
   self.dynamic = true
end

--- True when a loaded number may be one of the key.
function Context:keyable(e)
   return self.marks.dyn[e.src.id] and e.hint == floor(e.hint) and math.abs(e.hint) < BIG and self.opts.dynamic ~= false
end

--- What is symbolic in an entry, for people: a list of lines.
function M.describe(ctx)
   local lines = {}
   for _, s in ipairs(ctx.symbols) do
      lines[#lines + 1] = ('size %d of %s: %d or more%s, %d when captured%s'):format(s.dim, s.src.text, s.low,
         s.high < BIG and ', ' .. s.high .. ' at most' or '', s.hint, s.asked and ', marked' or '')
   end
   for _, e in ipairs(ctx.keyNumbers) do lines[#lines + 1] = ('number %s: any integer, %d when captured'):format(e.src.text, e.hint) end
   return lines
end

return M
