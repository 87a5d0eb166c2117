-- Fuzzer of capture: random Lua closures, run eagerly and compiled; results, changes of arguments and captured state, storages, random
-- numbers and error messages must agree. From the root of the built tree:
--
--    luajit spec/fuzz/capture.lua [--count n] [--seed s] [--plans share] [--jobs n] [--only k] [--keep]
--
-- seed: closure k has seed s + k. plans: share of the closures that run generated code (0 .. 1, default 0.01), the others run the graph's
-- interpreter. jobs: processes. only: closure k alone, with its source. keep: goes on behind a failure. A failure is shrunk and printed.
-- As a module: require 'fuzz.capture'.fuzz(count, seed, share) -> nil or the text of the first failure.

local main = arg and arg[0] and arg[0]:find 'fuzz/capture%.lua$'
local root = main and (arg[0]:match '^(.*)spec/' or '')
if main then
   dofile(root .. 'examples/paths.lua')
   package.path = root .. 'spec/?.lua;' .. package.path
end
require 'torch'
local compile = require 'relume.jit.compile'
local Gen = require 'fuzz.generate'
for _, family in ipairs {'flow', 'tables', 'closures', 'objects', 'errors', 'tensors', 'training'} do require('fuzz.kinds_' .. family) end
local run = require 'fuzz.run'
local clock = require 'relume.core'.clock or os.clock

local function usesPlans(k, share) return k * 619 % 1000 < share * 1000 end

--- One closure: nil, or the text of what differs.
local function try(seed, plans, shrink)
   local source = Gen.program(seed)
   local text = run.check(source, seed, plans)
   if not text then return end
   if shrink then source = run.shrink(source, seed, plans, 600) end
   return ('seed %d%s: %s\n%s\nshrunk: %s'):format(seed, plans and ' with plans' or '', text, source, tostring(run.check(source, seed, plans)))
end

--- Runs closures seed + first, seed + first + step, ... below seed + count. Returns the list of failures, of one at most unless keep is set.
local function fuzz(count, seed, share, first, step, keep)
   local warnings, failures = compile.warnings, {}
   compile.warnings = false
   for k = first or 0, count - 1, step or 1 do
      local text = try(seed + k, usesPlans(k, share or 0), true)
      if text then
         failures[#failures + 1] = text
         if keep then print(text) io.stdout:flush() else break end
      end
      if k % 20 == 0 then collectgarbage() end
      if main and k % 1000 < (step or 1) then io.stderr:write(("capture: at %d of %d\n"):format(k, count)) end
   end
   compile.warnings = warnings
   return failures
end

if not main then
   return {fuzz = function(count, seed, share) return fuzz(count, seed, share)[1] end, program = Gen.program, try = try, stats = run.stats}
end

-- Command line -----------------------------------------------------------------------------------------------------------------

local opts = {count = '1000', seed = tostring(os.time() % 1000000 * 1000), plans = '0.01', jobs = '1', first = '0', step = '1'}
for i, a in ipairs(arg) do
   local name = a:match '^%-%-(%a+)$'
   if name then opts[name] = arg[i + 1] and not arg[i + 1]:find '^%-%-' and arg[i + 1] or true end
end
local count, seed, share, jobs = tonumber(opts.count), tonumber(opts.seed), tonumber(opts.plans), tonumber(opts.jobs)
local started = clock()

local function report(closures)
   local s = clock() - started
   print(('capture: %d closures from seed %d in %.0f s, %.1f a second'):format(closures, seed, s, closures / s))
end

if opts.only then
   local k = tonumber(opts.only)
   compile.warnings = false
   print(Gen.program(seed + k))
   local text = try(seed + k, usesPlans(k, share), true)
   print(text or 'agrees')
   os.exit(text and 1 or 0)
end

-- One process: its failures and counts.
if jobs == 1 then
   local failures = fuzz(count, seed, share, tonumber(opts.first), tonumber(opts.step), opts.keep)
   if not opts.keep then print(failures[1] or '') end
   local s = run.stats
   print(('%d failures; %d closures, %d compiles, %d eager calls, %d breaks, %d calls that raise'):format(#failures, s.closures, s.compiles, s.eager, s.breaks,
      s.raised / 2))
   if tonumber(opts.step) == 1 then report(count) end
   os.exit(#failures > 0 and 1 or 0)
end

local pipes, failed = {}, 0
for j = 1, jobs do
   pipes[j] = assert(io.popen(('OMP_NUM_THREADS=1 luajit %s --count %d --seed %d --plans %s --first %d --step %d%s 2>&1'):format(arg[0], count, seed, opts.plans, j - 1,
      jobs, opts.keep and ' --keep' or '')))
end
for j = 1, jobs do
   local text = pipes[j]:read '*a'
   pipes[j]:close()
   io.write(text)
   failed = failed + (tonumber(text:match '(%d+) failures') or 1)
end
report(count)
print(failed == 0 and 'all agree' or failed .. ' failures')
os.exit(failed == 0 and 0 or 1)
