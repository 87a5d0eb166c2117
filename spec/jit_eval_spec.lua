-- Evaluator: every snippet gives the same results and leaves the same state eagerly and compiled.

local snippets = require 'support.jit_snippets'
local more, breaking = dofile 'spec/support/jit_snippets_more.lua'
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
      local function finish(ok, ...) return list(ok, ...) .. (after and ' > ' .. list(after(...)) or '') end
      out[i] = finish(pcall(g, unpack(args, 1, n)))
      if state then out[i] = out[i] .. ' # ' .. (type(state) == 'function' and list(state()) or show(state)) end
   end
   return out, g
end

local function agrees(source, most)
   local want = run(source, function(f) return f end)
   local got, g = run(source, compile.compile)
   assert.same(want, got)
   local s = compile.states[g]
   local breaks = 0
   for _, part in ipairs {s, unpack(s.family)} do
      for _, b in ipairs(part.breaks) do breaks = breaks + (b.id == 'changing-string' and 0 or 1) end -- those are for the number of calls
   end
   assert.is_true(breaks <= (most or 0), s.breaks[1] and tostring(s.breaks[1]))
   assert.is_true((s.stats.compiles or 0) >= 1)
   assert.equal(0, s.stats.eager or 0)
end

describe('evaluator', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   for name, source in pairs(snippets) do
      it('agrees with LuaJIT on ' .. name, function() agrees(source) end)
   end
   for name, source in pairs(more) do
      it('agrees with LuaJIT on ' .. name, function() agrees(source, breaking[name]) end)
   end
end)
