-- One random program, run eagerly and compiled over several calls (source, seed -> nil or what differs), and its smallest failing form.

local compile = require 'relume.jit.compile'
local C = require 'relume.core'
local library = require 'fuzz.library'
local compare = require 'fuzz.compare'

local M = {}
-- Op by op the bits are eager's, but for sums over pairs (LuaJIT promises no order) and several gradients added to one that is there.
local TOLERANCE = 1e-12

-- Arguments --------------------------------------------------------------------------------------------------------------------

local forms = {}
function forms.plain(size) return torch.randn(size), torch.randn(size) end
function forms.same(size)
   local x = torch.randn(size)
   return x, x
end
function forms.overlap(size)
   local base = torch.randn(size + 2)
   return base:narrow(1, 1, size), base:narrow(1, 3, size)
end
function forms.window(size)
   local base = torch.randn(size)
   return base, base:narrow(1, 1, size)
end
function forms.column(size)
   local base = torch.randn(size, 3)
   return base:select(2, 2), base:select(2, 3)
end
function forms.part(size) return torch.randn(size + 3):narrow(1, 2, size), torch.randn(size) end
function forms.leaf(size) return torch.randn(size):requiresGrad(true), torch.randn(size) end
function forms.state(size, t) return torch.randn(size), t.kept and t.kept:size(1) == size and t.kept or torch.randn(size) end
local names = {'plain', 'plain', 'plain', 'same', 'overlap', 'window', 'column', 'part', 'state', 'leaf'}

-- Calls: size, form of the tensors, n, flag, number of further arguments.
local function calls(seed)
   local list, state = {}, seed * 7 % 2147483647 + 1
   local function pick(n)
      state = state * 48271 % 2147483647
      return state % n + 1
   end
   local form = names[pick(#names)]
   for k = 1, 7 do
      list[k] = {size = k > 2 and pick(3) == 1 and 4 + pick(3) or 5, form = pick(4) == 1 and names[pick(#names)] or form,
         n = pick(3) == 1 and k or pick(4) == 1 and k / 2 or 2, flag = pick(4) > 1, more = pick(4) == 1 and pick(3) or 0}
   end
   return list
end

-- Running ----------------------------------------------------------------------------------------------------------------------

local function clean()
   torch.setdefaulttensortype 'torch.DoubleTensor'
   C.setGradEnabled(true)
   rawset(_G, 'fuzzGlobal', nil)
end

local function pack(...) return {n = select('#', ...), ...} end

-- Snapshots of all calls. wrap: how to compile a function; nil runs it as it is.
local function trace(source, seed, wrap)
   clean()
   wrap = wrap or function(f) return f end
   local chunk = assert(loadstring(source, '=fuzz'))
   local lib = library(wrap)
   local f, state, change = chunk(lib)
   local g, t, shots = wrap(f), {1, 2}, {}
   for k, call in ipairs(calls(seed)) do
      torch.manualSeed(seed + k)
      pcall(change, k)
      local x, y = forms[call.form](call.size, t)
      local r = pack(pcall(g, x, y, t, call.n, call.flag, unpack({k, 'more', x}, 1, call.more)))
      clean()
      if not r[1] then M.stats.raised = M.stats.raised + 1 end
      local list, n = {}, 0
      local function add(name, v)
         list[n + 1], list[n + 2] = name, v
         n = n + 2
      end
      for i = 1, r.n do add('result ' .. i - 1, r[i]) end
      add('x', x)
      add('y', y)
      add('t', t)
      local captured = pack(state())
      for i = 1, captured.n do add('state ' .. i, captured[i]) end
      add('global', lib.global)
      add('global', rawget(_G, 'fuzzGlobal'))
      add('random', torch.rand(1)[1]) -- the generator was advanced as far
      shots[k] = compare.shot(list, n)
   end
   return shots
end

-- Runs the graph itself, op by op.
local function interpreter(graph, inputs)
   local n = #inputs
   return function(...)
      local tensors, numbers = {}, {}
      for i = 1, select('#', ...) do
         if i <= n then tensors[i] = (select(i, ...)) else numbers[i - n] = (select(i, ...)) end
      end
      return graph:run(tensors, numbers)
   end
end

M.stats = {compiles = 0, eager = 0, breaks = 0, closures = 0, raised = 0}

local function tally(f)
   local s = compile.states[f]
   if not s then return end
   M.stats.closures = M.stats.closures + 1
   M.stats.compiles = M.stats.compiles + (s.stats.compiles or 0)
   M.stats.eager = M.stats.eager + (s.stats.eager or 0)
   M.stats.breaks = M.stats.breaks + #s.breaks
end

--- nil, or what differs between a source run eagerly and compiled. plans: generated code, not the graph's interpreter.
function M.check(source, seed, plans)
   local made = {}
   local opts = {backend = not plans and interpreter or nil}
   if seed % 5 == 1 then opts.dynamic = true elseif seed % 5 == 2 then opts.dynamic = false end
   local ok, want = pcall(trace, source, seed)
   if not ok then return 'eager run fails: ' .. tostring(want) end
   local okC, got = pcall(trace, source, seed, function(f)
      made[#made + 1] = compile.compile(f, opts)
      return made[#made]
   end)
   clean()
   if not okC then return 'compiled run fails: ' .. tostring(got) end
   if made[2] then tally(made[2]) end
   for k, shot in ipairs(want) do
      local text = compare.difference(shot, got[k], plans and 1e-6 or TOLERANCE) -- adam and its like blow up what is almost zero
      local call = calls(seed)[k]
      if text then return ('call %d (%d, %s, n %s, %s, %d more), %s'):format(k, call.size, call.form, call.n, tostring(call.flag), call.more, text) end
   end
end

-- Shrinking --------------------------------------------------------------------------------------------------------------------

local function lines(text)
   local list = {}
   for l in (text .. '\n'):gmatch '(.-)\n' do list[#list + 1] = l end
   return list
end

local function without(list, from, to, also)
   local out = {}
   for i, l in ipairs(list) do
      if (i < from or i > to) and i ~= also then out[#out + 1] = l end
   end
   return table.concat(out, '\n')
end

local function indent(l) return #l:match '^ *' end

-- Last line of the block that a line opens, itself when it opens none.
local function closing(list, i)
   local j = i + 1
   while list[j] and indent(list[j]) > indent(list[i]) do j = j + 1 end
   return j > i + 1 and j or i
end

--- The smallest program found that still differs in the same way (a difference, or an error), at most steps tries.
function M.shrink(source, seed, plans, steps)
   local kind = M.check(source, seed, plans)
   local fails = kind and kind:match '^%a+ run fails'
   local tries, changed = 0, true
   local function differs(text)
      tries = tries + 1
      if not loadstring(text) then return false end
      local r = M.check(text, seed, plans)
      return r and r:match '^%a+ run fails' == fails
   end
   while changed and tries < steps do
      changed = false
      local i = 1
      while tries < steps do
         local list = lines(source)
         if not list[i] then break end
         local last = closing(list, i)
         local inside = indent(list[i]) >= 6 -- the frame stays, else names become globals
         local shorter, opened = without(list, i, last), last > i and without(list, i, i, last)
         if inside and differs(shorter) then source, changed = shorter, true
         elseif inside and opened and differs(opened) then source, changed = opened, true
         else i = i + 1 end
      end
   end
   return source
end

return M
