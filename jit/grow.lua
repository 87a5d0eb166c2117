-- Tables that grow: t[#t + 1] = v and t[i] = v where the place changes from call to call (losses kept in a list, buffers of a loop).
--
-- A length that was seen to change is a number that is loaded. A write at a place that changes is noted with its expression and done at the end; the
-- overlay of the table does not know where it went, so a later look at places or length of that table settles it: the place is then guarded.

local value = require 'relume.jit.value'
local Context = require 'relume.jit.context'

local const = value.const

-- How far an expression is above the source with this id: 0 for the source itself; nil when it is something else.
local function above(e, id)
   if e.op == 'src' then return e.src.id == id and 0 or nil end
   if e.op ~= 'add' then return end
   local k = e.b.op == 'k' and e.b.v or e.a.op == 'k' and e.a.v
   local rest = k and above(e.b.op == 'k' and e.a or e.b, id)
   return rest and rest + k
end

local function loaded(e)
   if e.op == 'hole' then return false end
   return not (e.a and not loaded(e.a) or e.b and not loaded(e.b))
end

local function hasPlaces(t)
   for key in pairs(t.d) do
      if type(key) == 'number' then return true end
   end
   return false
end

--- #t, as a number that is loaded when it was seen to change.
function Context:length(t)
   if not t.real then return const(self:rawlen(t)) end
   self:needTable(t)
   local src = value.length(t.src)
   local known = not self.marks.dyn[src.id] or t.lenGuard or hasPlaces(t) or t.blind and t.grown ~= #t.blind
   if known then return const(self:rawlen(t)) end
   local n, e = t.grown or 0, {op = 'src', src = src, hint = #t.real}
   if n == 0 then return {k = 'num', e = e, hint = e.hint, src = src} end
   return value.num({op = 'add', a = e, b = {op = 'k', v = n}}, e.hint + n)
end

--- t[key] = v where the place changes from call to call: noted; false when the place has to be known.
function Context:blindWrite(t, key, v)
   if v.k == 'const' and v.v == nil then return false end -- the length stays
   if key.k ~= 'num' or not t.real or self.opts.dynamic == false or key.hint ~= key.hint or not loaded(key.e) then return false end
   self:needTable(t)
   local up = above(key.e, value.length(t.src).id)
   if not up and not self:changes(key) then return false end
   self:needNum(key)
   self:present(v)
   if not t.blind then
      t.blind, t.grown = {}, 0
      self.blind = self.blind or {}
      table.insert(self.blind, t)
   end
   if up == t.grown + 1 and t.grown == #t.blind then t.grown = up end
   t.blind[#t.blind + 1] = {key = key, v = v}
   return true
end

--- Appends as table.insert(t, v) does; false when the length has to be known.
function Context:append(t, v)
   local n = self:length(t)
   if n.k ~= 'num' then return false end
   return self:blindWrite(t, value.num({op = 'add', a = n.e, b = {op = 'k', v = 1}}, n.hint + 1), v)
end

--- The places of noted writes are looked at: from now on they are ordinary ones.
function Context:settle(t)
   local list = t.blind
   t.blind, t.grown = nil, nil
   for _, w in ipairs(list) do self:rawset(t, self:specialise(w.key), w.v) end
end

return {}
