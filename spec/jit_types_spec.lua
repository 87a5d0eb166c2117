-- Types that change: functions compiled with some argument types are called with all others; results and errors stay eager's.

local compile = require 'relume.jit.compile'

-- luacheck: ignore 631
local makers = {
   function() return torch.ones(2,2) end, function() return torch.ones(2,2):requiresGrad(true) end, function() return 3 end, function() return 'str' end, function() return nil end,
   function() return {torch.ones(2,2), n=2} end, function() return {1,2} end, function() return print end, function() return true end, function() return torch.LongStorage{2,2} end, function() return torch.DoubleTensor(2,2):fill(2) end,
   function() return function(t) return t end end, function() return setmetatable({}, {__index=function(t,k) return k end, __add=function() return 'add' end}) end, function() return 4.5 end
}

local programs = {
   function(a,b) return a+b end, function(a,b) local r=torch.cmul(a,b) if r:requiresGrad() then r:sum():backward() return a:grad(), b:grad() end return r end,
   function(a,b) if type(a)=='table' then return a[1], a.n, #a, b end return a,b end,
   function(a,b) if a == print then return 'print' end return a(b) end, function(a,b) return a==b, a and b, not a end,
   function(a,b) local t={} t[1]=a t.x=b for k,v in pairs(t) do t[k]=v end return t.x, #t end,
   function(a,b) return pcall(function() return a.x, b.n end) end,
   function(a,b) return a:size(1), a:size() end, function(a,b) return a[1], b end, function(a,b) a.q=b return a.q end, function(a, b) return tostring(a)==tostring(b) and 1 or torch.type(a), torch.type(b) end,
   function(a,b) for i,v in ipairs(a) do b=v end return b end, function(a,b) return a < b, a*2 end, function(a, b) return -a, #a, a..'x' end,
}

local function show(v)
   if torch.isTensor(v) then return torch.type(v) .. table.concat(v:double():contiguous():view(-1):totable(), ',') end
   if torch.isStorage(v) then return 'storage' .. table.concat(v:totable(), ',') end
   if type(v) == 'table' then return 'table' .. #v end
   return type(v) == 'function' and 'function' or tostring(v)
end

local function list(ok, ...)
   if not ok then return 'error' end
   local parts = {}
   for i = 1, select('#', ...) do parts[i] = show((select(i, ...))) end
   return table.concat(parts, ' | ')
end

describe('changing types', function()
   before_each(function()
      torch.setdefaulttensortype 'torch.FloatTensor'
      compile.warnings = false
   end)
   after_each(function()
      torch.setdefaulttensortype 'torch.DoubleTensor'
      compile.warnings = true
   end)

   for n, f in ipairs(programs) do
      it('of program ' .. n .. ' never reach a path compiled for others', function()
         local c = torch.compile(f)
         for _ = 1, 2 do
            for i, first in ipairs(makers) do
               for j, second in ipairs(makers) do
                  local want, got = list(pcall(f, first(), second())), list(pcall(c, first(), second()))
                  if want ~= got then assert.equal(want, got, ('arguments %d and %d'):format(i, j)) end
               end
            end
         end
         assert.equal(f, compile.states[c].f)
      end)
   end

   it('of inner compiled functions are inlined', function()
      local inner = torch.compile(function(x) return x * 2 end)
      local function fact(n, x) if n == 0 then return x end return fact(n - 1, x + n) end
      local outer = torch.compile(function(x) return inner(x) + fact(3, x) end)
      assert.equal(3 * 1 + 6, outer(torch.ones(1))[1])
      assert.equal(0, torch.compiler.stats(inner).compiles)
      assert.equal(1, torch.explain(outer, torch.ones(1)).graphs)
      assert.is_true(rawequal(outer, torch.compile(outer)))
   end)
end)

describe('numbers that change at each call', function()
   local bit, t = require 'bit', torch.ones(3)
   local uses = {
      ['string.format'] = {function(i) return ('%d of %s'):format(i, i + 1), t * i end, 3},
      concatenation = {function(i) return 'step ' .. i .. ': ' .. i / 2, t * i end, 3},
      tostring = {function(i) return tostring(i), t * i end, 3},
      ['table.concat'] = {function(i) return table.concat({'a', i, i * 2}, ' '), t * i end, 3},
      ['a string method'] = {function(i) return ('x'):rep(i) .. ('abcdefghijklmnopqrstuvwxyz'):sub(i, i), t * i end, 3},
      ['bit operations'] = {function(i) return bit.band(i, 3) + bit.lshift(i, 1) - bit.bnot(i), t * bit.bxor(i, 5) end, 2},
   }
   for name, use in pairs(uses) do
      it('do not compile per value in ' .. name, function()
         local f, most = unpack(use)
         local c = torch.compile(f)
         for i = 1, 20 do
            local want, y = f(i)
            local got, z = c(i)
            assert.equal(want, got)
            assert.equal(0, (y - z):abs():max())
         end
         local s = torch.compiler.stats(c)
         assert.equal(0, s.eager)
         assert.is_true(s.compiles <= most, s.compiles .. ' compiles')
      end)
   end
end)
