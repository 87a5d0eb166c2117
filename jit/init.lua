-- Capture: torch.compile, torch.explain and torch.compiler (Lua function or module -> compiled function or module).

local compile = require 'relume.jit.compile'
local modules = require 'relume.jit.module'
local call = require 'relume.jit.call'
local bytecode = require 'relume.jit.bytecode'
local explain = require 'relume.jit.explain'
local options = require 'relume.jit.options'
local checks = require 'relume.jit.checks'
local log = require 'relume.jit.debug'
local sizes = require 'relume.jit.sizes'
local okC, C = pcall(require, 'relume.core')

local M = {compiler = {}}
local enabled = (okC and C.env and C.env 'jit' or tonumber(os.getenv 'RELUME_JIT' or '1')) ~= 0
M.enabled = enabled

--- Makes a Lua function, or a module's forward and backward, fast: its tensor ops become one plan that one call runs.
-- Results, in-place changes and side effects stay as they are. What cannot be captured runs eagerly, and torch.explain says why.
-- @param f function, nn module or criterion; left out: torch.compile{...} gives a function that compiles with these options
-- @param opts table, see relume.jit.options: fullgraph, dynamic, backend, mode, strict, onRecompile
-- @return a function to be called as f, or the same module; f itself under RELUME_JIT=0
function M.compile(f, opts)
   if type(f) == 'table' and opts == nil and getmetatable(f) == nil and options.looksLike(f) then
      options.check(f, 3)
      return function(g) return M.compile(g, f) end
   end
   opts = options.check(opts, 3)
   if type(f) ~= 'function' and type(f) ~= 'table' then error(('[compile] function; got %s, need a Lua function or a module'):format(type(f)), 2) end
   if type(f) == 'table' and not getmetatable(f) then error('[compile] function; got a plain table, need a Lua function or a module', 2) end
   if not enabled then return f end
   if type(f) == 'function' then return compile.compile(f, opts) end
   return modules.compile(f, opts)
end

--- What compiling f(...) gives: graphs, breaks with source lines, guards and what each costs, recompiles, what would help. Nothing is run.
-- @param f function, compiled function or module (its forward)
-- @return report (see relume.jit.explain), printable
function M.explain(f, ...)
   if type(f) == 'table' and getmetatable(f) then
      local net = f
      local forward = modules.forward(net)
      if forward then return explain(forward, net, ...) end
      return explain(function(...) return net:forward(...) end, ...)
   end
   if type(f) ~= 'function' or not bytecode.of(f) then
      error(('[explain] function; got %s, need a Lua function or a module'):format(type(f) == 'function' and 'a C function' or type(f)), 2)
   end
   return explain(f, ...)
end

-- A method of a class by name, marked where the class chain has it.
local function disableMethod(class, name)
   local f = class[name]
   if type(f) ~= 'function' then error(('[disable] method %s; got %s, need a function'):format(tostring(name), type(f)), 3) end
   call.disabled[call.wrapped[f] or f] = true
end

M.markDynamic = sizes.markDynamic

--- Marks what captured code does not look into: it runs eagerly, the code around it stays compiled.
-- disable(f): a function; of a compiled function the original is given back. disable(object): a module, say: its methods when they are called on it.
-- disable(class, name, ...): methods of a class.
-- @return what was given (the function itself for a compiled one)
function M.compiler.disable(f, ...)
   if type(f) ~= 'function' and type(f) ~= 'table' then
      error(('[disable] function; got %s, need a function, an object or a class and method names'):format(type(f)), 2)
   end
   if select('#', ...) > 0 then
      for i = 1, select('#', ...) do disableMethod(f, (select(i, ...))) end
      return f
   end
   f = call.wrapped[f] or f
   call.disabled[f] = true
   return f
end

--- Names that torch.compile takes as options.backend, beside functions.
function M.compiler.listBackends()
   local list = {'c'}
   for name in pairs(compile.backends) do list[#list + 1] = name end
   table.sort(list)
   return list
end

--- Forgets what was compiled for a compiled function, or for all.
function M.compiler.reset(f)
   if f then
      local s = compile.states[f]
      if s then s:reset() end
      return
   end
   for w in pairs(compile.made) do compile.states[w]:reset() end
end

--- True inside of captured code.
function M.compiler.isCompiling() return false end
call.models[M.compiler.isCompiling] = function() return {{k = 'const', v = true}, n = 1} end

--- Counts of a compiled function: compiles, plans for other sizes and the kernel texts that these share, eager calls, calls beyond the limit.
function M.compiler.stats(f)
   local s = compile.states[f]
   return s and {compiles = s.stats.compiles or 0, plans = s.stats.plans or 0, texts = s:texts(),
      eager = s.stats.eager or 0, limit = s.stats.limit or 0, entries = #s.entries,
      breaks = #s.breaks, shared = s.stats.shared or 0}
end

--- Seconds that one run of the plan behind f(...) takes, mean of n, called as the compiled function calls it: to be taken off the time of a call.
function M.compiler.planSeconds(f, n, ...)
   local s = compile.states[f]
   local entry = s and s.entries[1]
   if not entry or not entry.plan then return 0 end
   local args, tensors = checks.inputs(entry.ctx, s.proto)(...)
   local plan, places, clock = entry.plan, entry.places, C.clock or os.clock
   local run, count = plan.call, #args
   local start = clock()
   for _ = 1, n do
      if places then plan:callSet(args, tensors, places) else run(plan, unpack(args, 1, count)) end
   end
   return (clock() - start) / n
end

M.log = log
return M
