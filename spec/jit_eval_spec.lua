-- Evaluator: every snippet gives the same results and leaves the same state eagerly and compiled.

local snippets = require 'support.jit_snippets'
local compile = require 'relume.jit.compile'

-- A value as text: tables by content (cycles by depth), functions by kind.
local function show(v, depth)
   if type(v) ~= 'table' then return type(v) == 'function' and 'function' or tostring(v) end
   if (depth or 0) > 4 then return '...' end
   local parts = {}
   for k, x in pairs(v) do parts[#parts + 1] = show(k, 9) .. '=' .. show(x, (depth or 0) + 1) end
   table.sort(parts)
   return '{' .. table.concat(parts, ' ') .. '}'
end

local function list(...)
   local parts = {}
   for i = 1, select('#', ...) do parts[i] = show((select(i, ...))) end
   return table.concat(parts, ' | ')
end

-- Results and state of all calls of a fresh copy.
local function run(source, wrap)
   local f, calls, state, after = assert(loadstring(source, '=snippet'))()
   local g, out = wrap(f), {}
   for i, args in ipairs(calls) do
      local n = 0
      for k in pairs(args) do n = math.max(n, k) end
      local function finish(...) return list(...) .. (after and ' > ' .. list(after(...)) or '') end
      out[i] = finish(g(unpack(args, 1, n)))
      if state then out[i] = out[i] .. ' # ' .. (type(state) == 'function' and list(state()) or show(state)) end
   end
   return out, g
end

describe('evaluator', function()
   for name, source in pairs(snippets) do
      it('agrees with LuaJIT on ' .. name, function()
         local want = run(source, function(f) return f end)
         local got, g = run(source, compile.compile)
         assert.same(want, got)
         local s = compile.states[g]
         assert.equal(0, #s.breaks, s.breaks[1] and tostring(s.breaks[1]))
         assert.is_true((s.stats.compiles or 0) >= 1)
      end)
   end
end)
