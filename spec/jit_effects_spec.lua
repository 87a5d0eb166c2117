-- Effects: after a call, also one that raises half-way, everything is as eager leaves it: tables, upvalues, tensors written in place, views,
-- storages resized and set anew, gradients, random state, gradient mode.

local compile = require 'relume.jit.compile'
local C = require 'relume.core'

local function show(v, depth)
   depth = depth or 0
   if torch.isTensor(v) then
      local text = ('%s %s %s | %s | storage %d offset %d'):format(v:type(), table.concat(v:size():totable(), 'x'), table.concat(v:stride():totable(), ','),
         v:dim() > 0 and table.concat(v:detach():clone():view(-1):totable(), ' ') or '', v:storage() and v:storage():size() or 0, v:storageOffset())
      if v:requiresGrad() and v:isLeaf() then text = text .. ' grad ' .. (v:grad() and show(v:grad()) or 'none') end
      return text
   end
   if type(v) ~= 'table' then return type(v) == 'function' and 'function' or tostring(v) end
   if depth > 3 then return '...' end
   local parts = {}
   for k, x in pairs(v) do parts[#parts + 1] = tostring(k) .. '=' .. show(x, depth + 1) end
   table.sort(parts)
   return '{' .. table.concat(parts, '; ') .. '}'
end

local function list(...)
   local parts = {}
   for i = 1, select('#', ...) do parts[i] = show((select(i, ...))) end
   return table.concat(parts, ' # ')
end

local function silent() return io.write '' end

-- Each: maker of a closure of x that may raise, and of what it changes outside. fail: where it raises (0: nowhere); breaks: whether it breaks there.
local programs = {
   tables = function(at)
      local t = {list = {1, 2}, n = 0}
      return function(x)
         t.n = t.n + 1
         t.list[#t.list + 1] = t.n
         at(1)
         t.new, t.n = {x = x:sum()}, nil
         setmetatable(t, {__index = {n = 0}})
         at(2)
         table.remove(t.list, 1)
         return #t.list, t.n
      end, function() return t end
   end,
   upvalues = function(at)
      local n, s, last = 0, 'a', nil
      return function(x)
         n, s = n + 1, s .. 'b'
         at(1)
         last = x
         n = n * 2
         at(2)
         s = nil or 'c'
         return n
      end, function() return {n, s, last or false} end
   end,
   inPlace = function(at)
      local w = torch.ones(6)
      local view = w:view(2, 3)
      return function(x)
         w:add(1)
         view[1]:mul(2)
         at(1)
         view:t()[2]:fill(7)
         x:add(w:narrow(1, 1, 5))
         at(2)
         w:narrow(1, 3, 2):zero()
         return view
      end, function() return {w, view} end
   end,
   storages = function(at)
      local a, b = torch.ones(4), torch.zeros(2, 2)
      return function(x)
         a:resize(2, 3):fill(2)
         b:set(x)
         at(1)
         b:add(1)
         a:set(torch.ones(3):mul(5))
         at(2)
         a:resize(0)
         b:resize(2, 4)
         return a:nElement()
      end, function() return {a, b:nElement(), b:storage() and b:storage():size()} end
   end,
   gradients = function(at)
      local w = torch.ones(5):requiresGrad(true)
      return function(x)
         torch.cmul(w, x):sum():backward()
         at(1)
         local g = w:grad()
         torch.noGrad(function() w:add(-0.1, g) end)
         at(2)
         w:grad():zero()
         return torch.cmul(w, w):sum():detach()
      end, function() return {w} end
   end,
   random = function(at)
      return function(x)
         local y = torch.rand(3)
         at(1)
         x:narrow(1, 1, 3):add(y)
         torch.randn(2)
         at(2)
         return torch.rand(2)
      end, function() return {torch.rand(2)} end
   end,
   gradientMode = function(at)
      return function(x)
         local was = C.setGradEnabled(false)
         at(1)
         local y = torch.enableGrad(function() at(2) return x * 2 end)
         C.setGradEnabled(was)
         return y
      end, function()
         local on = C.gradEnabled()
         C.setGradEnabled(true)
         return {on}
      end
   end,
   modules = function(at)
      local net = nn.Sequential():add(nn.Linear(5, 4)):add(nn.Tanh()):add(nn.Linear(4, 1))
      for _, m in ipairs(net.modules) do
         if m.weight then m.weight:fill(0.1) m.bias:fill(0.2) end
      end
      net:zeroGradParameters()
      return function(x)
         local y = net:forward(x)
         at(1)
         net:backward(x, torch.ones(1))
         at(2)
         net:updateParameters(0.1)
         return y:clone()
      end, function() return {net.output, net.gradInput, net.modules[1].weight, net.modules[1].gradWeight, net.modules[2].output} end
   end,
}

describe('effects', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   for name, make in pairs(programs) do
      for fail = 0, 2 do
         for _, broken in ipairs {false, true} do
            for _, deep in ipairs {false, true} do
               it(('of %s are as eager leaves them%s%s%s'):format(name, fail > 0 and ', raising at place ' .. fail or '', broken and ', breaking' or '',
                  deep and ', in pcall' or ''), function()
                  local function at(place)
                     if broken then silent() end
                     if place == fail then error('place ' .. place) end
                  end
                  local eager, state = make(at)
                  local raw, compiledState = make(at)
                  local function guarded(f)
                     if not deep then return f end
                     return function(x) local ok, y = pcall(f, x) x:mul(2) return ok, y end
                  end
                  local e, c = guarded(eager), torch.compile(guarded(raw))
                  for round = 1, 3 do
                     local x, y = torch.range(1, 5):mul(round), torch.range(1, 5):mul(round)
                     torch.manualSeed(round)
                     local want = list(pcall(e, x)) .. list(x, state())
                     torch.manualSeed(round)
                     local got = list(pcall(c, y)) .. list(y, compiledState())
                     assert.equal(want, got)
                  end
                  assert.equal(0, torch.compiler.stats(c).eager)
               end)
            end
         end
      end
   end
end)
