-- Plans against the interpreter: record a function, compile it, run both on equal inputs with equal seeds, compare everything.
local C = require 'relume.core'
local torch = require 'torch'
local M = {}

local function clone(x) -- same storage size and geometry, own memory
   local s = x:storage()
   if not s or x:nElement() == 0 then return x end
   local whole = x.new():set(s, 1, torch.LongStorage{ s:size() }):clone()
   return x.new():set(whole:storage(), x:storageOffset(), x:size(), x:stride())
end

-- Records f(fake1, ...) and returns the graph after its passes.
function M.graph(f, inputs, numbers)
   local g = C.graphBegin()
   local fakes = {}
   local ok, err = pcall(function()
      for i, x in ipairs(inputs) do fakes[i] = g:input(x) end
      for i, n in ipairs(numbers or {}) do fakes[#inputs + i] = g:number(n) end
      local out = { f(unpack(fakes)) }
      for _, o in ipairs(out) do g:output(o) end
   end)
   g:stop()
   if not ok then error(err, 2) end
   return g:passes()
end

local function flat(x)
   if torch.isTensor(x) then return x:nElement() == 0 and torch.DoubleTensor() or x:double():contiguous():view(-1) end
   return torch.DoubleTensor{ x }
end

-- Largest difference relative to 1 + |a|; NaN must meet NaN, infinity the same infinity.
function M.difference(a, b)
   local x, y = flat(a), flat(b)
   assert(x:nElement() == y:nElement(), 'sizes differ')
   local worst = 0
   for i = 1, x:nElement() do
      local p, q = x[i], y[i]
      if p ~= p or q ~= q then
         if not (p ~= p and q ~= q) then return math.huge end
      elseif p ~= q then
         worst = math.max(worst, math.abs(p - q) / (1 + math.abs(p)))
      end
   end
   return worst
end

-- Runs graph g both ways; returns the plan's info after checking outputs and updated inputs within tol.
function M.agree(g, inputs, numbers, tol, what)
   local plan = g:compile()
   local a, b = {}, {}
   for i, x in ipairs(inputs) do a[i], b[i] = clone(x), clone(x) end
   for round = 1, 2 do
      torch.manualSeed(7 + round)
      local want = { g:run(a, numbers or {}) }
      local after = torch.random(1, 1000000)
      torch.manualSeed(7 + round)
      local got = { plan:run(b, numbers or {}) }
      local after2 = torch.random(1, 1000000)
      assert(#want == #got)
      for i = 1, #want do
         assert(torch.type(want[i]) == torch.type(got[i]), (what or '') .. ' output type')
         local d = M.difference(want[i], got[i])
         if d > tol then error(('%s: output %d differs by %g\n%s\n%s'):format(what or '', i, d, g:print(), plan:source()), 2) end
      end
      for i = 1, #inputs do
         local d = M.difference(a[i], b[i])
         if d > tol then error(('%s: input %d differs by %g\n%s\n%s'):format(what or '', i, d, g:print(), plan:source()), 2) end
      end
      if after ~= after2 then error((what or '') .. ': generator differs', 2) end
   end
   return plan:info(), plan
end

-- Records f over the inputs and checks it; returns the plan's info.
function M.check(f, inputs, numbers, tol, what)
   return M.agree(M.graph(f, inputs, numbers), inputs, numbers, tol or 1e-5, what)
end

return M
