-- Tensor programs: each gives the same results, input changes and random numbers eagerly and compiled, without a break.

local compile = require 'relume.jit.compile'
require 'nn'

-- luacheck: ignore 631
local cases = {
   norm = function(x) local n=x:norm() return x/n, n end,
   mean = function(x) local m=x:sum()/x:nElement() return (x-m)*2, m*2+1, math.sqrt(m) end,
   scal = function(x) local m=(x:sum()+1)/3 x:mul(m) return x:add(m, x), m end,
   elem = function(x) local a=x[1][1] local b=x[2][2] x[1][2]=a+b return x, a*b end,
   mx = function(x) local v,i=x:max(2) return v,i end,
   idx = function(x) return x[{{1,2},{2,3}}]:clone(), x[{1,2}], x[{{},2}] end,
   mask = function(x) local m=x:gt(0.5) x[m]=0 return x, m end,
   fill = function(x) local y=torch.zeros(3) y[1]=5 y:narrow(1,2,2):fill(2) return y, torch.ones(2,2):t() end,
   tens = function(x) return torch.FloatTensor{1,2,3}, torch.Tensor(2,3):fill(3), torch.range(1,4), torch.eye(2) end,
   size = function(x) local s=x:size() return s, s[1], #x, x:size():totable() end,
   cat = function(x) return torch.cat({x,x},1), torch.cat(x,x,2), unpack(x:split(1,1)) end,
   neg = function(x) return -x, x:dot(x), x:min(), x:std(), x:var(), x:mean() end,
   typ = function(x) return x:double(), torch.type(x), x:type(), torch.isTensor(x), x:long() end,
   mm = function(x) return x*x:t(), torch.mm(x,x:t()), x:t():contiguous() end,
   new = function(x) local y=x.new(2,2):zero() y:resizeAs(x):copy(x) return y, x:clone():fill(1) end,
   tbl = function(x) local t={} for i=1,3 do t[i]=x*i end return nn.utils and t end,
   max0 = function(x) local a=x:max() return x:div(a), math.max(a, 3), a-1 end,
   str = function(x) return ('%d x %d'):format(x:size(1), x:size(2)) end,
   sub = function(x) local r=x:sub(1,2) r:zero() return x, r:isContiguous(), x:dim() end,
   scatter = function(x) return x:index(1, torch.LongTensor{2,1}), x:gather(2, torch.LongTensor{{1},{2},{3}}) end,
   sortt = function(x) local s,i=torch.sort(x,2) return s,i end,
   drop = function(x) return torch.bernoulli(x:clone():fill(0.5)) end,
   expand = function(x) return x[1]:view(1,-1):expandAs(x), x:sum(1), x:cumsum(2) end,
   cmp = function(x) return x:eq(x):sum(), torch.lt(x,0.5), x==x end,
}

local function show(v)
   if torch.isTensor(v) then return torch.type(v) .. show(v:double():contiguous():view(-1):totable()) .. show(v:size()) end
   if torch.isStorage(v) then return show(v:totable()) end
   if type(v) == 'table' then
      local parts = {}
      for k, x in pairs(v) do parts[#parts + 1] = tostring(k) .. '=' .. show(x) end
      table.sort(parts)
      return '{' .. table.concat(parts, ' ') .. '}'
   end
   return type(v) == 'number' and ('%.4g'):format(v) or tostring(v)
end

local function list(...)
   local parts = {}
   for i = 1, select('#', ...) do parts[i] = show((select(i, ...))) end
   return table.concat(parts, ' | ')
end

local function run(f, seed)
   torch.manualSeed(seed)
   local x = torch.rand(3, 4)
   local out = list(f(x))
   return out .. ' > ' .. show(x) .. ' ' .. ('%.6f'):format(torch.rand(1)[1])
end

describe('captured tensor program', function()
   before_each(function() torch.setdefaulttensortype 'torch.FloatTensor' end)
   after_each(function() torch.setdefaulttensortype 'torch.DoubleTensor' end)

   for name, f in pairs(cases) do
      it('agrees with eager: ' .. name, function()
         local c = torch.compile(f)
         for seed = 1, 2 do assert.equal(run(f, seed), run(c, seed)) end
         local s = compile.states[c]
         assert.equal(0, #s.breaks, s.breaks[1] and tostring(s.breaks[1]))
         assert.equal(1, s.stats.compiles)
         assert.is_nil(s.stats.eager)
      end)
   end

   it('gives graphs that do not depend on addresses, so that kernels are found in the cache', function()
      local function graphOf(order) -- of eight modules, made in another order than they are called
         local made, net, text = {}, nn.Sequential(), nil
         for i = 1, 8 do made[i] = nn.Tanh() end
         for i = 1, 8 do net:add(made[order(i)]) end
         net:evaluate()
         local c = torch.compile(function(x) return net:forward(x) end, {backend = function(g)
            text = g:print()
            return function(x) return g:run({x}, {}) end
         end})
         c(torch.ones(2))
         return text
      end
      local text = graphOf(function(i) return i end)
      assert.truthy(text:find 'output %%8')
      assert.equal(text, graphOf(function(i) return 9 - i end))
   end)
end)
