-- What the fuzzer of capture found, made small: each closure gives the same results, errors and effects eagerly and compiled.

local compile = require 'relume.jit.compile'

-- Results of make()'s closure over several calls, as a list; make gives the closure and what it closes over.
local function outcomes(make, wrap, calls)
   local f, state = make()
   local list = {}
   f = wrap(f)
   for k = 1, calls do
      local r = {pcall(f, k)}
      for i = 1, #r do r[i] = torch.isTensor(r[i]) and r[i]:detach():clone() or r[i] end
      list[k] = {r, state and state()}
   end
   return list
end

local function agree(make, calls)
   local want = outcomes(make, function(f) return f end, calls or 3)
   assert.near(outcomes(make, torch.compile, calls or 3), want, 1e-12)
end

describe('a found closure', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   it('turns a gradient on and accumulates one in the same call', function()
      agree(function()
         local w = torch.ones(3)
         return function()
            w:requiresGrad(true)
            for _ = 1, 2 do torch.pow(w, 2):sum():backward() end
         end, function() return w:grad() end
      end)
   end)

   it('writes a value with history into a captured tensor', function()
      agree(function()
         local w, total = torch.ones(2):requiresGrad(true), torch.zeros(2)
         return function()
            total:add(w * 2)
            total:sum():backward()
            total = total:detach()
            return total:requiresGrad(), w:grad()
         end, function() return w:grad() end
      end)
      agree(function()
         local w, total = torch.ones(2):requiresGrad(true), torch.zeros(2)
         return function() torch.add(total, w, w) end, function() return tostring(total:requiresGrad()) .. tostring(total:isLeaf()) end
      end, 1)
   end)

   it('writes a value with history into a view made in front of a break', function()
      agree(function()
         local w = torch.zeros(3)
         return function()
            local v, leaf = w:narrow(1, 2, 2), torch.ones(2):requiresGrad(true)
            io.write ''
            v:copy(leaf * 2)
            w:sum():backward()
            w = w:detach()
            return leaf:grad()
         end, function() return w end
      end)
   end)

   it('leaves with the gradient of a leaf made inside', function()
      agree(function()
         local w = torch.ones(2)
         return function()
            w = torch.ones(2)
            w:requiresGrad(true)
            torch.pow(w, 2):sum():backward()
            return w:grad()
         end, function() return w:grad() end
      end)
      agree(function()
         local w = torch.ones(2)
         return function()
            w:requiresGrad(true)
            torch.pow(w, 2):sum():backward()
            return torch.abs(w):requiresGrad()
         end, function() return w:grad() end
      end)
   end)

   it('detaches a captured leaf that is written later', function()
      agree(function()
         local w = torch.ones(2)
         return function(k)
            if w:requiresGrad() then w:fill(k) end
            w:requiresGrad(true)
            w = w:detach()
         end, function() return w:fill(7) end
      end)
   end)

   it('appends nil to a list that grows', function()
      agree(function()
         local log, kept = {}, {}
         return function(k)
            log[#log + 1] = kept.nothing
            log[#log + 1] = torch.ones(1) * k
            return #log
         end, function() return log[#log] end
      end, 6)
   end)

   it('writes to a view whose base became a leaf behind a break', function()
      agree(function()
         local w = torch.zeros(3)
         return function()
            local v = w:narrow(1, 2, 2)
            w:requiresGrad(true)
            if w:sum() > -1 then w:sum():backward() end
            v:add(1)
         end, function() return w:grad() end
      end)
   end)

   it('sees that the base of a view requires a gradient now', function()
      agree(function()
         local w = torch.zeros(3)
         return function(k)
            if k == 3 then w = torch.zeros(3):requiresGrad(true) end
            local v = w:narrow(1, 2, 2)
            io.write ''
            v:add(1)
         end, function() return w:detach() end
      end, 5)
      agree(function()
         local w = torch.zeros(3)
         return function(k)
            local x = torch.ones(2)
            if k == 2 then x:requiresGrad(true) end
            local v = w:narrow(1, 2, 2)
            io.write ''
            v:copy(x)
            return tostring(v:requiresGrad()) .. tostring(w:requiresGrad())
         end, function() return w:detach() end
      end, 5)
   end)

   it('computes with numbers of changing sizes alone', function()
      agree(function()
         local out = {}
         return function(k)
            local x = torch.ones(4 + k)
            local n = math.min(x:size(1) % 3, 3)
            if n > 1 then out[k] = n else out[k] = -n end
            return out[k], #out - x:nElement()
         end
      end, 6)
      agree(function()
         local count, lists = 0, {{1, 2}, {1, 2}, {1, 2}}
         return function(k)
            local t, x = lists[k % 3 + 1], torch.ones(4 + k)
            for _ = 1, #t do
               count = #t - x:nElement()
               if count % 2 == 0 then break end
            end
            return count
         end
      end, 6)
   end)

   it('sets a variable of a closure behind a break and reads it no more', function()
      agree(function()
         local get
         return function(k)
            local c = k
            get = function() return c end
            io.write ''
            c = k + 10
         end, function() return get and get() end
      end)
   end)

   it('keeps the value that a test behind a break moves', function()
      agree(function()
         local log = {}
         return function(k)
            local ok, e = pcall(function() error('no' .. k) end)
            log[#log + 1] = type(e) == 'string' and e or ok
            local ok2, e2 = pcall(torch.narrow, torch.ones(2), 1, 1, 7 + k)
            return type(e2) == 'string' and e2 or ok2, log[#log]
         end
      end, 8)
   end)

   it('raises in an op because of values, after effects in front of it', function()
      agree(function()
         local count, log = 0, {}
         return function(k)
            count = count + 1
            log[#log + 1] = torch.rand(1)
            local x = torch.range(1, 3)
            local y = x:index(1, torch.LongTensor {1, k})
            return y * 2, pcall(function() return x:gather(1, torch.LongTensor {k + 1}) end)
         end, function() return tostring(count) .. #log end
      end, 5)
   end)

   it('resizes a captured tensor beside an op that may raise', function()
      agree(function()
         local b = torch.zeros(2)
         return function(k)
            b:resize(2 + k):fill(k)
            return torch.range(1, 4):index(1, torch.LongTensor {k, 1})
         end, function() return b end
      end)
   end)

   it('calls the closure of this call at a break inside of it', function()
      agree(function()
         local out = {}
         return function(k)
            local x = torch.ones(2) * k
            local function inner() io.write '' return x[1] + 1 end
            io.write ''
            out[k] = inner()
            return out[k]
         end
      end, 7)
   end)

   it('overwrites a value with history and makes it a leaf', function()
      agree(function()
         local w = torch.ones(2)
         return function(k)
            local x = torch.ones(2) * k
            if k == 2 then x:requiresGrad(true) end
            torch.cmul(w, x, x)
            w:requiresGrad(true)
            local leaf = w:isLeaf()
            if leaf then w = w:detach() end
            return leaf, w
         end
      end, 4)
      agree(function()
         local w = torch.ones(2)
         return function(x)
            local old = type(x) == 'number' and torch.ones(2) * x or x
            torch.cmul(w, old, old)
            w:requiresGrad(true)
         end, function()
            local leaf = w:isLeaf()
            w = leaf and w:detach() * w:detach():clone():requiresGrad(true) or w -- a value with history for the next call
            return leaf
         end
      end, 4)
   end)

   it('takes a gradient of a gradient of what stands on code outside', function()
      agree(function()
         local w = torch.ones(2)
         return function(k)
            if k == 2 then w:requiresGrad(true) end
            local x = w * k
            io.write ''
            local g = x:clone():requiresGrad(true)
            local d = torch.autograd.grad({torch.pow(g, 3):sum()}, {g}, nil, {createGraph = true})[1]
            return torch.autograd.grad({d:sum()}, {g})[1]
         end
      end, 4)
   end)

   it('sets a captured tensor and writes a value with history into it', function()
      agree(function()
         local b, other = torch.zeros(2), torch.ones(3)
         return function(k)
            local x = torch.ones(2):requiresGrad(k > 1)
            b:set(other)
            b:resizeAs(x):copy(x)
            local made = b:requiresGrad()
            b = b:detach()
            return made
         end, function() return b end
      end, 4)
      agree(function()
         local b, other = torch.zeros(2), torch.ones(2)
         local x = torch.ones(2):requiresGrad(true)
         return function()
            b:set(other)
            b:copy(x)
         end, function() return tostring(b:requiresGrad()) end
      end, 1)
   end)

   it('raises from levels that are C functions', function()
      agree(function()
         return function(k)
            local out = {}
            for level = 0, 2 do
               out[#out + 1] = select(2, pcall(function() error('no', level) end))
               out[#out + 1] = select(2, pcall(function() error(k, level) end))
               out[#out + 1] = select(2, pcall(function() error(5, level) end))
               out[#out + 1] = select(2, pcall(error, 'direct', level > 1 and 2 or level))
               out[#out + 1] = select(2, pcall(function() return pcall(function() error('in', level) end) end))
               out[#out + 1] = select(2, pcall(table.sort, {2, 1}, function() error('cmp', level) end))
            end
            return table.concat({tostring(out[1]), tostring(out[2]), tostring(out[3])}, ';'), unpack(out)
         end
      end)
   end)
end)

describe('a constant that is read by index', function()
   local idx = {4, 4, 1}
   local cases = {
      gather = function() return torch.ones(6):gather(1, torch.LongTensor(idx)) end,
      index = function() return torch.ones(6):mul(3):index(1, torch.LongTensor(idx)) end,
      both = function()
         local l = torch.ones(6):mul(3)
         return l:gather(1, torch.LongTensor(idx)), l
      end,
      rows = function() return torch.zeros(3, 4):add(2):index(1, torch.LongTensor {3, 1}) end,
      range = function() return torch.range(1, 6):gather(1, torch.LongTensor(idx)) end,
   }
   for name, f in pairs(cases) do
      it('is in memory first: ' .. name, function()
         local want, got = {f()}, {torch.compile(f)()}
         for i = 1, #want do assert.is_true(torch.equal(want[i], got[i])) end
      end)
   end
end)

describe('a result', function()
   it('has memory of its own size, also where it is a part of what was computed', function()
      local function f(x, y)
         local m = torch.cat({x:view(1, -1), y:view(1, -1), x:view(1, -1)}, 1)
         return torch.zeros(5) + m[3]:clone(), m[1]:clone() * 1, m
      end
      local function facts(...)
         local list = {}
         for i, r in ipairs {...} do list[i] = {r:storageOffset(), r:storage():size()} end
         return list
      end
      local x, y = torch.ones(5), torch.zeros(5)
      assert.same(facts(f(x, y)), facts(torch.compile(f)(x, y)))
      local function first(...) return (f(...)) end
      assert.same(facts(first(x, y)), facts(torch.compile(first)(x, y)))
   end)
end)

describe('a tensor that x:set() left without storage', function()
   local cases = {
      made = function(x)
         local z = x:clone()
         return z:set()
      end,
      given = function(_, e) return e end,
      viewed = function(_, e) return e:view(0, 3), e:narrow(1, 1, 0), e:unsqueeze(1), e:expandAs(e), e:detach() end,
      computed = function(_, e) return e * 2, e:clone():add(1), torch.cat(e, e) end,
      set = function(x) return x:set() end,
   }
   for name, f in pairs(cases) do
      it('leaves compiled code: ' .. name, function()
         local c = torch.compile(f)
         for _ = 1, 2 do
            local want, got = {f(torch.ones(3), torch.ones(2):set())}, {c(torch.ones(3), torch.ones(2):set())}
            assert.equal(#want, #got)
            for i = 1, #want do
               assert.same(want[i]:size():totable(), got[i]:size():totable())
               assert.equal(want[i]:storage() == nil, got[i]:storage() == nil)
            end
         end
      end)
   end
end)
