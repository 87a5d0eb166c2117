-- Capture: torch.compile, torch.explain and torch.compiler (Lua function or module -> compiled function or module).

local compile = require 'relume.jit.compile'
local modules = require 'relume.jit.module'
local call = require 'relume.jit.call'
local explain = require 'relume.jit.explain'
local emit = require 'relume.jit.emit'
local runtime = require 'relume.jit.runtime'
local log = require 'relume.jit.debug'
local okC, C = pcall(require, 'relume.core')

local M = {compiler = {}}
local enabled = (okC and C.env and C.env 'jit' or tonumber(os.getenv 'RELUME_JIT' or '1')) ~= 0
M.enabled = enabled

local known = {fullgraph = true, dynamic = true, backend = true, mode = true, strict = true, onRecompile = true}
local reactions = {warn = true, error = true, eager = true}

--- Makes a Lua function, or a module's forward and backward, fast: its tensor ops become one plan that one call runs.
-- Results, in-place changes and side effects stay as they are. What cannot be captured runs eagerly and is reported once.
-- @param f function, nn module or criterion
-- @param opts table: fullgraph (raise instead of running eagerly), strict (half types round where eager stores), backend (function(graph, inputs) that returns
--   a function of the inputs), mode, dynamic, onRecompile (function(reason), or 'warn', 'error' or 'eager')
-- @return a function to be called as f, or the same module; f itself under RELUME_JIT=0
function M.compile(f, opts)
   if type(f) == 'table' and f.fullgraph ~= nil and opts == nil and getmetatable(f) == nil then f, opts = nil, f end
   for name in pairs(opts or {}) do
      if not known[name] then error(('[compile] option; got %s, need fullgraph, dynamic, backend, mode, strict or onRecompile'):format(tostring(name)), 2) end
   end
   local react = opts and opts.onRecompile
   if react ~= nil and type(react) ~= 'function' and not reactions[react] then
      error(("[compile] onRecompile; got %s, need a function, 'warn', 'error' or 'eager'"):format(tostring(react)), 2)
   end
   if f == nil and opts then return function(g) return M.compile(g, opts) end end
   if type(f) ~= 'function' and type(f) ~= 'table' then error(('[compile] function; got %s, need a Lua function or a module'):format(type(f)), 2) end
   if not enabled then return f end
   if type(f) == 'function' then return compile.compile(f, opts) end
   if not getmetatable(f) then error('[compile] function; got a plain table, need a Lua function or a module', 2) end
   return modules.compile(f, opts)
end

--- What compiling f(...) gives: graphs, breaks with source lines, guards, recompiles. Nothing is run.
-- @param f function, compiled function or module (its forward)
-- @return report (see relume.jit.explain), printable
function M.explain(f, ...)
   if type(f) == 'table' then
      local net = f
      local forward = modules.forward(net)
      if forward then return explain(forward, net, ...) end
      return explain(function(...) return net:forward(...) end, ...)
   end
   return explain(f, ...)
end

--- Marks a function: captured code that calls it runs eagerly.
function M.compiler.disable(f)
   call.disabled[f] = true
   return f
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

--- Counts of a compiled function: compiles, eager calls, calls beyond the limit.
function M.compiler.stats(f)
   local s = compile.states[f]
   return s and {compiles = s.stats.compiles or 0, eager = s.stats.eager or 0, limit = s.stats.limit or 0, entries = #s.entries, breaks = #s.breaks}
end

--- Seconds that one run of the plan behind f(...) takes, mean of n: to be taken off the time of a call.
function M.compiler.planSeconds(f, n, ...)
   local s = compile.states[f]
   local entry = s and s.entries[1]
   if not entry or not entry.plan then return 0 end
   local inputs = emit.inputs(entry.ctx, s.proto.params, s.proto.vararg, runtime)
   local plan, run = entry.plan, entry.plan.call
   local clock = C.clock or os.clock
   local function time(...)
      local start = clock()
      for _ = 1, n do run(plan, ...) end
      return (clock() - start) / n
   end
   return time(inputs(...))
end

M.log = log
return M
