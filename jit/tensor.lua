-- Tensors while capturing: real ones become inputs of the graph when an op looks at them, results are fakes
-- (tensor value <-> fake tensor); what differs at the end is written back.

jit.off(true, true) -- each path is evaluated once: traces would not pay, and would push out the program's

local value = require 'relume.jit.value'
local guard = require 'relume.jit.guard'
local Context = require 'relume.jit.context'
local okC, C = pcall(require, 'relume.core')

local M = {}
local const, TRUE, FALSE = value.const, value.TRUE, value.FALSE

-- Recording --------------------------------------------------------------------------------------------------------------------

--- The graph of this capture, begun at the first op.
function Context:begin()
   if not self.graph then self.graph = C.graphBegin() end
   return self.graph
end

--- Tells the graph the source line of the ops that follow.
function Context:location()
   if not okC then return end
   local where = self:where()
   if where ~= self.lastLine then
      self.lastLine = where
      self:begin():loc(where)
   else
      self:begin()
   end
end

--- Ends recording and puts the thread's state back; safe to call twice.
function Context:stop()
   if self.graph then self.graph:stop() end
   for _, held in ipairs(self.callbacks or {}) do held.ctx, held.f = nil, nil end
   if self.castStart ~= nil then C.setAutocast(self.castStart or nil) end
   if self.gradStart ~= nil then
      C.setGradEnabled(self.gradStart)
      self.gradEnd = self.gradNow
   end
end

--- Gradient mode: set while capturing, replayed when it differs at the end. Returns what it was.
function Context:setGrad(on)
   local was = C.setGradEnabled(on)
   if self.gradStart == nil then self.gradStart = was end
   self.gradNow = on
   return was
end

function Context:gradMode()
   self.readsGrad = true
   return C.gradEnabled()
end

-- Facts ------------------------------------------------------------------------------------------------------------------------

--- Facts of a tensor as a table, as C.guardNew takes them.
function M.facts(t)
   local name, grad, sizes, strides, offset, storage, size = C.tensorFacts(t)
   return {type = name, requiresGrad = grad, sizes = sizes, strides = strides, offset = offset, storage = storage, storageSize = size}
end

local function sameList(a, b)
   if #a ~= #b then return false end
   for i = 1, #a do
      if a[i] ~= b[i] then return false end
   end
   return true
end

--- True when two facts are of the same window of the same storage.
function M.sameWindow(a, b)
   return a.storage == b.storage and a.offset == b.offset and a.storageSize == b.storageSize
      and sameList(a.sizes, b.sizes) and sameList(a.strides, b.strides)
end

--- Name, old facts and new facts of the first tensor of a captured call that is another now.
function M.difference(ctx, now)
   local rows, names, full = {}, {}, {}
   for i, v in ipairs(ctx.inputs) do rows[i], names[i], full[v.src.id] = v.facts, v.src.text, true end
   for _, g in ipairs(ctx.guards) do
      if g.kind == 'partial' and not full[g.src.id] then rows[#rows + 1], names[#names + 1] = g.facts, g.src.text end
   end
   return guard.tensorDifference(rows, names, now, function(t) return C.torch.isTensor(t) and M.facts(t) or nil end)
end

-- Inputs -----------------------------------------------------------------------------------------------------------------------

-- An input that was made on the tape: not a leaf, so that it may be written in place. Gradients go to the leaf behind it.
local function madeOutside(v)
   v.leaf = v.fake
   v.fake = v.leaf:detach()
   v.entry = v.leaf:detach() -- stays on that node when the input is written in place
   C.custom({v.leaf}, {v.fake, v.entry}, function(dy) return dy end, true)
   v.history0 = C.history(v.fake)
end

--- The gradient that an input has accumulated is looked at.
function Context:inputGradient(v)
   local facts = v.facts
   if v.gradSeen or not facts or not facts.requiresGrad or facts.history then return end
   v.gradSeen = true
   self:needType(v)
   local ctx, g = self, v.real:grad()
   if g then
      v.grad0 = {k = 'tensor', real = g, src = value.gradient(v.src)}
      v.fake:setGrad(ctx:fake(v.grad0))
   else
      ctx:guard {kind = 'nograd', src = v.src}
   end
end

--- The fake of a tensor value; a real tensor becomes an input of the graph.
function Context:fake(v)
   if v.fake then return v.fake end
   local g = self:begin()
   if not v.src or v.src.kind == 'const' and not v.src.text then
      v.fake = g:constant(v.real)
      self.byfake[v.fake] = v
      return v.fake
   end
   v.facts = M.facts(v.real)
   self:freeSizes(v)
   if v.facts.requiresGrad then v.facts.history = not v.real:isLeaf() end
   local base = select(5, C.history(v.real))
   v.isView, v.facts.based = base ~= nil, base and base:requiresGrad() or false
   if v.facts.based and not v.facts.requiresGrad then self:brk('history', v.src.text .. ' is a view of a leaf') end
   self:sharesWindow(v)
   v.fake = g:input(v.real, self:probeSizes(v) or v.facts.window)
   self.inputs[#self.inputs + 1] = v
   v.index = #self.inputs
   if v.facts.requiresGrad and not v.fake:requiresGrad() then v.fake:requiresGrad(true) end
   if v.facts.history then madeOutside(v) end
   self.byfake[v.fake] = v
   v.facts0 = M.facts(v.fake)
   return v.fake
end

--- A number that changes between calls as an input of the graph.
function Context:numberInput(v)
   if not v.input then
      v.input = self:begin():number(v.hint)
      self.numbers[#self.numbers + 1] = v.e
   end
   return v.input
end

--- The value of a userdata that a C function returned.
function Context:tensorResult(x)
   local v = self.byfake[x] or self.objects[x]
   if v then return v end
   if not okC or not C.torch.isTensor(x) then
      v = {k = 'udata', real = x, made = true}
      self.objects[x] = v
   elseif C.isFake(x) then
      local _, grad = C.tensorFacts(x) -- on the tape eager gives a tensor, not a number; so do its aliases
      v = {k = C.isNumberResult(x) and not grad and not self.aliasing and 'gnum' or 'tensor', fake = x}
      self.byfake[x] = v
   else
      v = {k = 'tensor', real = x, made = true}
      self.objects[x] = v
   end
   return v
end

-- Methods that need no values and no sizes: a tensor that is only replaced or asked for its type does not become an input. -------

local methods = {}

function methods.type(ctx, args)
   local v = args[1]
   if args.n > 1 and not ctx:isNil(args[2]) then return end
   ctx:needType(v)
   return {const((C.tensorFacts(v.real))), n = 1}
end

function methods.requiresGrad(ctx, args)
   local v = args[1]
   if args.n > 1 then return end
   local _, on = C.tensorFacts(v.real)
   if v.src and not v.gradGuard then
      v.gradGuard = true
      ctx:guard {kind = 'partial', src = v.src, real = v.real, facts = {type = (C.tensorFacts(v.real)), requiresGrad = on}}
   end
   return {on and TRUE or FALSE, n = 1}
end

-- x:set(y): x is y from now on; the old contents are not looked at.
function methods.set(ctx, args)
   local v, other = args[1], args[2]
   if args.n ~= 2 or other.k ~= 'tensor' or not v.src then return end
   if methods.requiresGrad(ctx, {v, n = 1})[1] == TRUE then return end
   if C.tensorFacts(v.real) ~= C.tensorFacts(other.real or other.fake) then return end
   local fake = ctx:fake(other)
   local blank = v.real.new()
   blank:set(fake)
   ctx.replaced = (ctx.replaced or 0) + 1
   v.fake, v.replaced = blank, ctx.replaced
   ctx.byfake[blank] = v
   return {v, n = 1}
end

--- Result of a method on a tensor that is no input yet, or nil when it must become one.
function Context:tensorMethod(_, name, args)
   local m = methods[name]
   local v = args[1]
   if not m or not v or v.k ~= 'tensor' or v.fake or not v.real then return end
   self:begin()
   return m(self, args)
end

-- Elements ---------------------------------------------------------------------------------------------------------------------

local function get(t, key) return t[key] end
local function set(t, key, v) t[key] = v end

local function element(ctx, fn, args)
   local r = {}
   ctx.calling, ctx.folding = 'an index', false
   ctx:location()
   for i = 1, args.n do r[i] = ctx:raw(args[i]) end
   local ok, x = pcall(fn, unpack(r, 1, args.n))
   if ok then return x end
   if type(x) == 'string' and x:find('[capture] needs values', 1, true) then ctx:brk('needs-values', 'an index') end
   ctx:raise((tostring(x):gsub('^.-:%d+: ', '')))
end

--- t[key] of a userdata, key no method name.
function Context:elementGet(t, key)
   local view = self:outerElement(t, key)
   if view and view.flat then return self:elementGet(view, const(1)) end
   return view or self:result(element(self, get, {t, key, n = 2}))
end

--- t[key] = v of a userdata.
function Context:elementSet(t, key, v)
   if t.k ~= 'tensor' then self:brk('needs-values', 'an assignment to a userdata') end
   if v.k == 'num' and self:changes(v) then
      self:needNum(v)
      v = {k = 'gnum', fake = self:numberInput(v)}
   end
   local view = (v.k == 'tensor' or v.k == 'gnum' or value.isNumber(v)) and self:outerElement(t, key)
   if view then
      local mt = debug.getmetatable(view.real)
      self:callC(v.k == 'tensor' and mt.copy or mt.fill, {view, v, n = 2})
   else
      element(self, set, {t, key, v, n = 3})
   end
end

-- Outputs ----------------------------------------------------------------------------------------------------------------------

--- Number of the graph's output that a fake is (made one when it is none yet).
function Context:output(v)
   self.outputs = self.outputs or {n = 0}
   local fake = v.fake
   local i = self.outputs[fake]
   if not i then
      local _, grad = C.tensorFacts(fake)
      self.graph:output(fake)
      i = self.outputs.n + 1
      if grad then
         self.escapes = self.escapes or {}
         self.escapes[#self.escapes + 1] = {index = i, fake = fake}
      end
      self.outputs.n, self.outputs[fake] = i, i
      self.outputs[i] = v
   end
   return i
end

local ORDER = {set = 1, ungrad = 2, flag = 3, history = 3, grad = 4} -- only a tensor that requires a gradient takes one

-- The gradient of a fake, the same object each time it is asked for: an output of the graph is found by it.
local function gradientNow(v)
   local g = v.fake:grad()
   if not g or not v.gradient or C.pointer(g) ~= C.pointer(v.gradient) then v.gradient = g end
   return v.gradient
end

--- The gradient that an output made inside has as a leaf, as a value; nil when it has none.
function Context:madeGradient(v)
   if v.src or v.k ~= 'tensor' or not v.fake:requiresGrad() or not v.fake:isLeaf() then return end
   local g = gradientNow(v)
   return g and (self.byfake[g] or {k = 'tensor', fake = g})
end

-- Inputs as they came, then what was set and never read: an order that is the same in each process, so that the plan's text is.
local function before(a, b)
   local x, y = a.v.index or math.huge, b.v.index or math.huge
   if x ~= y then return x < y end
   if a.v ~= b.v then return a.v.replaced < b.v.replaced end
   return ORDER[a.kind] < ORDER[b.kind]
end

--- A tensor was written in place: inputs that have a history now, while they had none, remember it.
function Context:wroteHistory(t)
   if not t.fake:requiresGrad() then return end
   for _, v in ipairs(self.inputs) do
      if not v.facts.requiresGrad and v.fake:requiresGrad() then v.tookHistory = true end
   end
end

-- Another tensor of the program sees an input's memory, and so its history, as far as is known.
local function seenElsewhere(ctx, v)
   if select(4, C.history(v.real)) then return true end
   for _, other in ipairs(ctx.inputs) do
      if other ~= v and other.facts.storage == v.facts.storage then return true end
   end
   return false
end

--- Tensors of the program whose window or gradient changed: list of {v, kind}.
function Context:tensorChanges()
   for _, v in ipairs(self.inputs) do
      if v.tookHistory and not v.fake:requiresGrad() and seenElsewhere(self, v) then
         self:brk('grad-escapes', v.src.text .. ' took a history, which what shares its memory keeps')
      end
   end
   local list = {}
   for fake, v in pairs(self.byfake) do
      if v.src and v.k == 'tensor' then
         if v.replaced then
            if fake:requiresGrad() then self:brk('grad-escapes', v.src.text .. ' is set and written') end
            list[#list + 1] = {v = v, kind = 'set'}
         elseif v.facts0 then
            local now = M.facts(fake)
            if not M.sameWindow(v.facts0, now) then list[#list + 1] = {v = v, kind = 'set'} end
            local taped = now.requiresGrad or v.facts.requiresGrad
            if taped and C.history(fake) ~= v.history0 then
               if v.isView then self:brk('grad-escapes', v.src.text .. ' is a view') end
               if list[#list] and list[#list].v == v then self:brk('grad-escapes', v.src.text .. ' is set') end
               list[#list + 1] = {v = v, kind = 'history'}
            elseif now.requiresGrad ~= v.facts.requiresGrad then list[#list + 1] = {v = v, kind = 'flag', on = now.requiresGrad} end
            local g = now.requiresGrad and gradientNow(v)
            if g and not (v.grad0 and M.sameWindow(M.facts(g), M.facts(v.grad0.fake))) then
               list[#list + 1] = {v = v, kind = 'grad', fake = g}
            elseif v.grad0 and not g then
               list[#list + 1] = {v = v, kind = 'ungrad'}
            end
         end
      end
   end
   table.sort(list, before)
   return list
end

return M
