-- Gradients that leave a compiled function: backward is called outside, with eager's gradients, versions, errors and gradients of gradients.

local compile = require 'relume.jit.compile'

-- Leaves with requiresGrad: w (4, 5), b (5); data x (3, 4), v (5). Each case is a function of them and the gradient that its results get.
local function leaves()
   torch.manualSeed(7)
   return {w = torch.randn(4, 5):requiresGrad(true), b = torch.randn(5):requiresGrad(true), x = torch.randn(3, 4), v = torch.rand(5):add(0.5)}
end

local function layer(p, x) return torch.tanh(x * p.w + p.b:view(1, 5):expand(3, 5)) end
local function total(t) return torch.sum(t) end

-- name -> f(p) that returns tensors; back(results) calls backward on some of them.
local cases = {
   ['a loss'] = {function(p) local h = layer(p, p.x) return total(torch.cmul(h, h)) end},
   ['a loss and what it was made of'] = {function(p) local h = layer(p, p.x) return total(torch.cmul(h, h)), h end},
   ['two losses, one used'] = {function(p) local h = layer(p, p.x) return total(h), total(torch.sqrt(torch.abs(h - h))) end,
      function(a) a:backward() end},
   ['two losses, both used'] = {function(p) local h = layer(p, p.x) return total(h), total(torch.exp(h)) end,
      function(a, b) a:backward(nil, {retain = true}) b:backward() end},
   ['a result with a given gradient'] = {function(p) return layer(p, p.x) end, function(h) h:backward(torch.range(1, 15):view(3, 5)) end},
   ['a gradient that is not contiguous'] = {function(p) return layer(p, p.x) end, function(h) h:backward(torch.range(1, 15):view(5, 3):t()) end},
   ['a result and a view of it'] = {function(p) local h = layer(p, p.x) return h, h:view(-1) end, function(h, flat)
      total(torch.cmul(h, h)):backward(nil, {retain = true})
      total(torch.exp(flat)):backward()
   end},
   ['a view of a result that is changed afterwards'] = {function(p) local h = layer(p, p.x) * 2 return h, h:select(1, 1) end, function(h, row)
      h:mul(3)
      total(torch.cmul(row, row)):backward()
   end},
   ['two views of a base that stays inside'] = {function(p) local h = layer(p, p.x) * 2 return h:select(1, 1), h:narrow(1, 1, 2) end, function(a, b)
      a:mul(2)
      total(torch.cmul(b, b)):backward()
   end},
   ['a view of a leaf'] = {function(p) return p.w:t(), p.b:narrow(1, 2, 3) end, function(t, n)
      total(torch.cmul(t, t)):backward()
      total(torch.exp(n)):backward()
   end},
   ['results that need no gradient'] = {function(p)
      local h = layer(p, p.x)
      return total(h), torch.gt(h, 0), h:detach(), p.x * 2
   end, function(a) a:backward() end},
   ['a table of results'] = {function(p) local h = layer(p, p.x) return {h = h, loss = total(torch.exp(h))} end,
      function(t) t.loss:backward(nil, {retain = true}) t.h:backward(torch.ones(3, 5)) end},
   ['an in-place change of a value inside'] = {function(p)
      local h = p.x * p.w
      h:add(1)
      h:select(1, 2):mul(3)
      return total(torch.cmul(h, h))
   end},
   ['data that is changed in place'] = {function(p) p.x:mul(2) return total(layer(p, p.x)) end},
   ['data that takes a history'] = {function(p) p.v:cmul(p.b) return p.v * 2 end, function(y, p)
      total(torch.cmul(p.v, y)):backward()
   end},
   ['a history that is dropped'] = {function(p) local y = total(torch.exp(p.b)) p.v:zero() return y end, function(y, p)
      y:backward()
      assert.is_false(p.v:requiresGrad())
   end},
   ['a leaf made inside'] = {function(p)
      local s = torch.ones(5):requiresGrad(true)
      return total(torch.cmul(torch.cmul(s, p.b), p.v)), s
   end, function(y, s) y:backward() return s:grad() end},
   ['a leaf made inside that has a gradient already'] = {function(p)
      local s = torch.ones(5):requiresGrad(true)
      total(torch.cmul(s, p.v)):backward()
      return s
   end, function(s) total(torch.exp(s)):backward() return s:grad() end},
   ['random numbers'] = {function(p) return total(torch.cmul(layer(p, p.x), torch.rand(3, 5))) end},
   ['a gradient inside, a history outside'] = {function(p)
      local y = total(torch.exp(p.b))
      local g = torch.autograd.grad({y}, {p.b}, nil, {createGraph = true})[1]
      return total(torch.cmul(g, g)) + y
   end},
   ['no gradient at all'] = {function(p) return torch.noGrad(function() return total(layer(p, p.x)) end) end, function() end},
   ['a result written to a table'] = {function(p) p.out = layer(p, p.x) end, function(p) total(p.out):backward() end, table = true},
   ['half of the work detached'] = {function(p) local h = layer(p, p.x):detach() return total(torch.cmul(p.b:view(1, 5):expand(3, 5), h)) end},
}

local function tensorsOf(list, out)
   for i = 1, list.n or #list do
      local t = list[i]
      if torch.isTensor(t) then out[#out + 1] = t:detach():clone()
      elseif type(t) == 'table' and not t.w then
         local keys = {}
         for k in pairs(t) do keys[#keys + 1] = k end
         table.sort(keys)
         for _, k in ipairs(keys) do tensorsOf({t[k]}, out) end
      end
   end
   return out
end

local function run(f, case, p)
   torch.manualSeed(3)
   local r = {f(p)}
   if case.table then r[1] = p end
   local flags = {}
   for i, t in ipairs(r) do flags[i] = torch.isTensor(t) and t:requiresGrad() end
   local extra
   if case[2] then r[#r + 1] = p extra = case[2](unpack(r)) r[#r] = nil else r[1]:backward() end
   return tensorsOf({r, extra, p.w:grad(), p.b:grad(), p.x, p.v, n = 6}, {}), flags
end

local function equal(want, got)
   assert.equal(#want, #got)
   for i = 1, #want do
      assert.is_true(want[i]:isSameSizeAs(got[i]))
      local a, b = want[i]:double(), got[i]:double()
      assert.is_true(a:nElement() == 0 or (a - b):abs():max() < 1e-9, tostring(want[i]) .. tostring(got[i]))
   end
end

describe('a gradient that leaves a compiled function', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   for name, case in pairs(cases) do
      it('of ' .. name, function()
         local c = torch.compile(case[1])
         for _ = 1, 2 do
            local want, flags = run(case[1], case, leaves())
            local got, flags2 = run(c, case, leaves())
            equal(want, got)
            assert.same(flags, flags2)
         end
         local s = torch.compiler.stats(c)
         assert.equal(0, s.eager, compile.states[c].breaks[1] and tostring(compile.states[c].breaks[1]))
         assert.equal(1, s.compiles)
      end)
   end

   it('is one of gradients, too', function()
      local function f(p) local h = layer(p, p.x) return total(torch.cmul(h, torch.exp(h))) end
      local c = torch.compile(f)
      local function penalty(g, p)
         local y = g(p)
         local dw, db = unpack(torch.autograd.grad({y}, {p.w, p.b}, nil, {createGraph = true}))
         local norm = total(torch.cmul(dw, dw)) + total(torch.cmul(db, db))
         norm:backward()
         return {y:detach(), norm:detach(), p.w:grad(), p.b:grad()}
      end
      equal(penalty(f, leaves()), penalty(c, leaves()))
      equal(penalty(f, leaves()), penalty(c, leaves()))
      assert.equal(1, torch.compiler.stats(c).compiles)
   end)

   it('of gradients draws the same random numbers', function()
      local function f(p) return total(torch.cmul(torch.exp(p.b), torch.cmul(torch.rand(5), p.b))) end
      local c = torch.compile(f)
      local function penalty(g, p)
         torch.manualSeed(5)
         local y = g(p)
         torch.rand(3)
         local db = torch.autograd.grad({y}, {p.b}, nil, {createGraph = true})[1]
         total(torch.cmul(db, db)):backward()
         return {p.b:grad(), torch.rand(2)}
      end
      equal(penalty(f, leaves()), penalty(c, leaves()))
   end)

   it('of gradients knows data as it was before it was changed', function()
      local function f(p) local y = total(torch.cmul(torch.exp(p.b), p.v:clone())) p.v:zero() return y end
      local c = torch.compile(f)
      local function penalty(g, p)
         local db = torch.autograd.grad({g(p)}, {p.b}, nil, {createGraph = true})[1]
         total(torch.cmul(db, db)):backward()
         return {p.b:grad(), p.v}
      end
      equal(penalty(f, leaves()), penalty(c, leaves()))
   end)

   it('runs through what was made outside', function()
      local function f(p, h) h:mul(2) return total(torch.cmul(h, p.w)), h end
      local c = torch.compile(f)
      local function go(g)
         local p = leaves()
         local h = p.w * 3
         local y, h2 = g(p, h)
         assert.is_true(rawequal(h, h2))
         local z = y + total(torch.cmul(h, h))
         z:backward()
         return {p.w:grad(), h:detach()}
      end
      for _ = 1, 2 do equal(go(f), go(c)) end
      assert.equal(1, torch.compiler.stats(c).compiles)
      assert.equal(0, torch.compiler.stats(c).eager)
   end)

   it('is given back twice when it is retained, and once when not', function()
      local c = torch.compile(function(p) return total(torch.exp(p.b)) end)
      local p = leaves()
      local y = c(p)
      y:backward(nil, {retain = true})
      local once = p.b:grad():clone()
      y:backward()
      equal({once * 2}, {p.b:grad()})
      assert.error_matches(function() y:backward() end, 'freed by an earlier backward')
   end)

   it('finds a saved value that was changed, as eager does, and no other', function()
      local function f(p) return torch.cmul(p.w, p.w), torch.tanh(p.b), p.v:clone():cmul(p.b) end
      local c = torch.compile(f)
      for _, g in ipairs {f, c} do
         local p = leaves()
         local y = g(p)
         torch.noGrad(function() p.w:mul(2) end)
         assert.error_matches(function() y:backward(torch.ones(4, 5)) end, 'changed in place')
         p = leaves()
         local _, t = g(p)
         torch.noGrad(function() p.b:mul(2) end) -- eager holds the result of tanh, not b
         t:backward(torch.ones(5))
         p = leaves()
         _, t = g(p)
         torch.noGrad(function() t:mul(2) end)
         assert.error_matches(function() t:backward(torch.ones(5)) end, 'changed in place')
         p = leaves()
         local _, _, q = g(p)
         p.v:zero() -- a copy was used
         q:backward(torch.ones(5))
         equal({leaves().v}, {p.b:grad()})
      end
      assert.equal(0, torch.compiler.stats(c).eager)
   end)

   it('accumulates over micro-batches, and is left out under noGrad', function()
      local function f(p, i) return total(torch.cmul(layer(p, p.x * i), p.v:view(1, 5):expand(3, 5))) end
      local c = torch.compile(f)
      local p, q = leaves(), leaves()
      for i = 1, 4 do
         f(p, i):backward()
         c(q, i):backward()
         local a = torch.noGrad(f, p, i)
         local b = torch.noGrad(c, q, i)
         assert.near(type(a) == 'number' and a or a:totable(), type(b) == 'number' and b or b:totable(), 1e-9)
      end
      equal({p.w:grad(), p.b:grad()}, {q.w:grad(), q.b:grad()})
      assert.equal(0, torch.compiler.stats(c).eager)
   end)

   it('passes through graph breaks', function()
      local seen = {}
      local note = torch.compiler.disable(function(n) seen[#seen + 1] = n end)
      local function f(p)
         local h = layer(p, p.x)
         note(h:size(1))
         local y = total(torch.cmul(h, h))
         note(2)
         y:backward()
         return y * 2
      end
      local c = torch.compile(f)
      local p, q = leaves(), leaves()
      for _ = 1, 3 do equal({f(p):detach()}, {c(q):detach()}) end
      equal({p.w:grad(), p.b:grad()}, {q.w:grad(), q.b:grad()})
      assert.equal(12, #seen)
   end)

   it('has plans of its own for each size', function()
      local function f(p, x) return total(torch.exp(torch.tanh(x * p.w))), x end
      local c = torch.compile(f)
      for n = 2, 7 do
         local x = torch.randn(n, 4)
         local p, q = leaves(), leaves()
         f(p, x):backward()
         c(q, x):backward()
         equal({p.w:grad()}, {q.w:grad()})
      end
      assert.equal(0, torch.compiler.stats(c).eager)
      assert.is_true(torch.compiler.stats(c).compiles <= 2)
   end)

   it('of a function written with its own backward', function()
      local Cube = torch.autograd.Function.extend 'Cube'
      function Cube.forward(ctx, x) ctx.x = x return torch.pow(x, 3) end
      function Cube.backward(ctx, dy) return torch.cmul(dy, torch.cmul(ctx.x, ctx.x)) * 30 end -- not the true one
      local function f(p) return total(torch.cmul(Cube.apply(p.b), p.v)) end
      local c = torch.compile(f)
      local p, q = leaves(), leaves()
      f(p):backward()
      c(q):backward()
      equal({p.b:grad()}, {q.b:grad()})
      assert.equal(1, torch.compiler.stats(c).compiles)
   end)

   it('goes with torch.grad, outside and inside', function()
      local function loss(p, x) return total(torch.exp(torch.tanh(x * p.w))), 5 end
      local c = torch.compile(loss)
      local p = {w = torch.randn(4, 2)}
      local x = torch.randn(3, 4)
      local want, value = torch.grad(loss)(p, x)
      local got, value2 = torch.grad(c)(p, x)
      local inside, value3 = torch.compile(torch.grad(loss))(p, x)
      local both = torch.compile(torch.grad(c))(p, x)
      equal({want.w, want.w, want.w}, {got.w, inside.w, both.w})
      assert.near(value, value2, 1e-9)
      assert.near(value, value3, 1e-9)
   end)

   it('saves little', function()
      local c = torch.compile(function(p) return total(torch.sigmoid(torch.exp(torch.tanh(p.big * 3)))) end)
      local p = {big = torch.randn(1000):requiresGrad(true)}
      local y = c(p)
      local C = require 'relume.core'
      collectgarbage()
      collectgarbage()
      local before = C.memory().live
      local z = c(p)
      collectgarbage()
      assert.is_true(C.memory().live - before < 12000, tostring(C.memory().live - before))
      assert.near(y:totable(), z:totable(), 1e-9)
   end)

   it('lets go of results that no backward reaches', function()
      for _, backend in ipairs {'c', 'eager'} do
         local c = torch.compile(function(x) return torch.exp(torch.tanh(x)) end, {backend = backend})
         local alive = setmetatable({}, {__mode = 'v'})
         for i = 1, 10 do alive[i] = c(torch.ones(5):requiresGrad(true)) end
         for _ = 1, 4 do collectgarbage() end
         local n = 0
         for _ in pairs(alive) do n = n + 1 end
         assert.is_true(n <= 1, n .. ' of 10 results are alive') -- the stack may hold the last one
      end
   end)

   it('of a value that is written over is kept by what shares its memory, as by eager', function()
      local function states(wrap)
         local list, weight = {}, torch.ones(5)
         local f = wrap(function(x, y) y:cmul(torch.cmul(weight, x)) y:uniform(0, 1) end)
         for k = 1, 4 do
            if k == 3 then weight:requiresGrad(true) end
            torch.manualSeed(k)
            local s = torch.range(1, 8)
            local x, y = s:narrow(1, 1, 5), s:narrow(1, 3, 5)
            f(x, y)
            list[k] = {x:requiresGrad(), y:requiresGrad(), s:requiresGrad(), s:detach():totable()}
         end
         return list
      end
      assert.same(states(function(f) return f end), states(torch.compile))
   end)
end)
