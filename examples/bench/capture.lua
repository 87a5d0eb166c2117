-- Capture: what torch.compile makes of every training step here: the examples, the closures and the workloads (programs -> table).
-- luajit examples/bench/capture.lua [--only closures] [--out doc/capture.md]
--
-- A step runs some times eagerly and compiled from one seed; then a warm compiled call is run once more with a hook that counts calls of tensor
-- functions by Lua code, as an eager one was: what is left of them was not captured.
local standalone = arg and arg[0] and arg[0]:find 'capture%.lua$'
local root = (standalone and arg[0] or debug.getinfo(1, 'S').source:sub(2)):match '^(.*)examples/' or ''
if standalone then dofile(root .. 'examples/paths.lua') end
require 'torch'
require 'nn'
require 'optim'
local C = require 'relume.core'
local M = {}
require('relume.jit.trial').on = false -- tiny graphs between breaks would not pay and run eagerly
local STEPS, COUNTED = 14, 6

-- Counting ---------------------------------------------------------------------------------------------------------------------

-- Functions that only ask a tensor something.
local queries = {}
for name in ([[size stride dim nDimension nElement numel isSize isSameSizeAs isContiguous isSetTo type isTensor storage storageOffset requiresGrad
   isLeaf grad setGrad __len elementSize]]):gmatch '%S+' do queries[name] = true end

--- Calls of tensor functions by Lua code while f(...) runs.
local function calls(f, ...)
   local n = 0
   jit.off()
   jit.flush()
   debug.sethook(function()
      local name = C.capturable[debug.getinfo(2, 'f').func]
      if name and not queries[name:match '[%w_]+$'] then n = n + 1 end
   end, 'c')
   local ok, e = pcall(f, ...)
   debug.sethook()
   jit.on()
   if not ok then error(e, 0) end
   return n
end

-- A step's loss: a number, a tensor of one element, or what an optimiser returns.
local function loss(first, second)
   if type(second) == 'table' then first = second[1] end
   if type(first) == 'number' then return first end
   return torch.isTensor(first) and first:nElement() == 1 and first:detach():double():sum() or 0
end

local function difference(a, b)
   local worst = 0
   for i = 1, math.min(#a, STEPS + 1) do
      local d = math.abs(a[i] - b[i]) / math.max(1, math.abs(a[i]))
      if d ~= d and (a[i] == a[i] or b[i] == b[i]) then d = math.huge end
      worst = math.max(worst, d == d and d or 0)
   end
   return #a == #b and worst or math.huge
end

local notOps = { input = true, const = true, number = true, output = true, tensor = true }

local function opsOf(report)
   local n = 0
   for _, ops in ipairs(report.ops) do
      for name, count in pairs(ops) do n = n + (notOps[name] and 0 or count) end
   end
   return n
end

-- The row of a compiled function f beside the eager step. run(step) calls one some times; the rest are the last call's arguments.
local function row(name, f, eager, same, run, ...)
   run(f)
   local before, after = calls(run, eager), calls(run, f)
   local r = torch.explain(f, ...)
   return { name = name, graphs = r.graphs, breaks = r.breaks, list = r.list, ops = opsOf(r), compiles = r.compiles, eager = r.eager, limit = r.limit,
      calls = before, left = after, share = before > 0 and 1 - after / before or 1, difference = same }
end

-- The norm of a network's parameters, nil without one.
local function norm(net)
   local sum = net and 0
   for _, p in ipairs(net and net:parameters() or {}) do sum = sum + p:norm() ^ 2 end
   return sum and math.sqrt(sum)
end

--- A step of its number (and its network, of which the parameters count as a loss), made twice by make() from one seed:
-- {name, graphs, breaks, ops, compiles, calls, left, share, difference ...}.
function M.step(name, make)
   torch.manualSeed(1)
   local eager, net = make()
   torch.manualSeed(1)
   local f, net2 = make()
   f = torch.compile(f)
   local losses = { {}, {} }
   for k, step in ipairs { eager, f } do
      torch.manualSeed(2)
      for i = 1, STEPS do losses[k][i] = loss(step(i)) end
      losses[k][STEPS + 1] = norm(k == 1 and net or net2)
   end
   return row(name, f, eager, difference(losses[1], losses[2]), function(g)
      for i = STEPS + 1, STEPS + COUNTED do g(i) end
   end, STEPS + 1)
end

-- Programs ---------------------------------------------------------------------------------------------------------------------

--- The closures of closures.lua.
function M.closures(rows, seen)
   for _, c in ipairs(dofile(root .. 'examples/bench/closures.lua')) do seen(M.step(c.name, function() return (c.make()) end), rows) end
end

--- What step() takes of a workload.
function M.maker(make, sizes)
   return function()
      local w = make(sizes)
      return w.step, w.net
   end
end

--- The workloads, at tiny sizes.
function M.workloads(rows, seen)
   local tiny = dofile(root .. 'examples/bench/tiny.lua')
   local names = C.readdir(root .. 'examples/bench/workloads')
   table.sort(names)
   for _, file in ipairs(names) do
      local name = file:match '^(.*)%.lua$'
      if name then
         local make = assert(loadfile(root .. 'examples/bench/workloads/' .. file))()
         seen(M.step(name, M.maker(make, tiny[name])), rows)
      end
   end
end

-- Runs an example's file; what it gives to torch.compile becomes spy(f).
local function run(file, options, spy)
   local path, nothing = root .. 'examples/' .. file, function() end
   local env = setmetatable({ print = nothing, arg = { [0] = path, unpack(options) } }, { __index = _G })
   env.io = setmetatable({ write = nothing }, { __index = io })
   env.torch = setmetatable({ compile = spy }, { __index = torch })
   env._G = env
   local globals = _G.arg
   _G.arg = env.arg -- the option parser reads it
   local ok, e = pcall(setfenv(assert(loadfile(path)), env))
   _G.arg = globals
   if not ok then error(e, 0) end
end

--- The examples that train.
function M.examples(rows, seen)
   local list = { { 'first.lua', 'first.lua' }, { 'mnist.lua, mlp', 'mnist.lua', '--model', 'mlp', '--epochs', '1', '--batch', '900', '--compile' },
      { 'mnist.lua, lenet', 'mnist.lua', '--model', 'lenet', '--epochs', '1', '--batch', '3000', '--compile' } }
   for _, e in ipairs(list) do
      local losses, eager, f, last = { {}, {} }, nil, nil, nil
      local function keep(k, step)
         return function(...)
            last = { n = select('#', ...), ... }
            local r = { step(...) }
            table.insert(losses[k], loss(unpack(r)))
            return unpack(r)
         end
      end
      run(e[2], { unpack(e, 3) }, function(g) eager = g return keep(1, g) end)
      run(e[2], { unpack(e, 3) }, function(g) f = torch.compile(g) return keep(2, f) end)
      seen(row(e[1], f, eager, difference(losses[1], losses[2]), function(g) g(unpack(last, 1, last.n)) end, unpack(last, 1, last.n)), rows)
   end
end

M.sections = { 'examples', 'closures', 'workloads' }

-- Printing ---------------------------------------------------------------------------------------------------------------------

local head = [[
# What is captured

Written by `luajit examples/bench/capture.lua --out doc/capture.md`: every training step of this repository under `torch.compile`, one line changed.

Graphs and breaks are those of a warm call; ops are the graphs' nodes before the passes. Calls are calls of tensor functions by Lua code in some eager
steps; what warm compiled steps still make of them was not captured. The difference is the largest of the losses of the first steps and of the norm of
the parameters behind them, relative to eager's (resnet18 learns 16 random images at a rate of 0.1, which makes rounding ten times larger at each of its
first steps: after one step the compiled parameters are nearer to those computed in doubles than eager's, and in doubles both differ by 1e-15);
compiles count all functions that capture made of the step (a step is captured again when its optimiser's state has appeared).
]]

local function line(r)
   return ('| %s | %d | %d | %d | %.0f | %d | %d | %.1f %% | %.0e | %d |'):format(r.name, r.graphs, r.breaks, r.ops, r.ops / math.max(r.graphs, 1),
      r.calls, r.left, 100 * r.share, r.difference, r.compiles)
end

local columns = '| step | graphs | breaks | ops | ops a graph | calls | left | captured | difference | compiles |\n|---|---|---|---|---|---|---|---|---|---|'

--- All rows as the manual's page. rows: by section.
function M.page(rows)
   local out, calls_, left, worst = { head }, 0, 0, 0
   for _, section in ipairs(M.sections) do
      out[#out + 1] = ('## %s\n\n%s'):format(section:gsub('^%l', string.upper), columns)
      for _, r in ipairs(rows[section] or {}) do
         out[#out + 1] = line(r)
         calls_, left, worst = calls_ + r.calls, left + r.left, math.max(worst, r.difference)
      end
      for _, r in ipairs(rows[section] or {}) do
         for _, b in ipairs(r.list) do out[#out + 1] = ('\n%s: break `%s` at %s, %s.'):format(r.name, b.id, b.where:match '[^/]*$', b.reason) end
      end
      out[#out + 1] = ''
   end
   out[#out + 1] = ('All together: %.2f %% of %d calls captured; largest difference %.0e.'):format(100 * (1 - left / calls_), calls_, worst)
   return table.concat(out, '\n') .. '\n'
end

if standalone then
   local opt = require 'options' ('luajit examples/bench/capture.lua [options]', {
      { 'only', table.concat(M.sections, ','), 'sections, comma between', { 'examples', 'closures', 'workloads', many = true } },
      { 'out', '', 'write the page to this file', 'file' } })
   torch.setdefaulttensortype 'torch.FloatTensor'
   local rows = {}
   for section in opt.only:gmatch '[^,]+' do
      rows[section] = {}
      M[section](rows[section], function(r, list)
         list[#list + 1] = r
         io.stderr:write(line(r), '\n')
      end)
   end
   local text = M.page(rows)
   if opt.out == '' then io.write(text) return end
   local file = assert(io.open(opt.out, 'w'))
   file:write(text)
   file:close()
end
return M
