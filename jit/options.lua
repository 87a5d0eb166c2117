-- Options of torch.compile: names, types and values, checked before anything is compiled (table -> the same table).
--
--   fullgraph    boolean: a graph break is an error
--   dynamic      boolean: true, sizes of tensors that are arguments are symbolic from the first call on; false, every size is compiled by itself;
--                nil, what was seen to change becomes symbolic
--   backend      'c' (the default), 'eager' (the captured graph, op by op), or function(graph, inputs) that returns a function of the inputs
--   mode         'default', 'reduce-overhead', 'max-autotune': accepted for programs that pass them; on the CPU all give the same plan
--   strict       boolean: half types round where eager stores
--   outputs      boolean: false, modules inside of a step do not keep their output and gradInput (see inner.lua), which takes memory and time
--   onRecompile  'warn', 'error', 'eager', or function(reason), called when another value came for a guard

local compile = require 'relume.jit.compile'

local M = {}

local function oneOf(...)
   local set, names = {}, {...}
   for _, name in ipairs(names) do set[name] = true end
   for i, name in ipairs(names) do names[i] = ("'%s'"):format(name) end
   local text = table.concat(names, ', ', 1, #names - 1) .. ' or ' .. names[#names]
   return function(v) return set[v] end, text
end

local function boolean() return function(v) return type(v) == 'boolean' end, 'true or false' end

local function functionOr(ok, text)
   return function(v) return type(v) == 'function' or ok(v) end, 'a function, ' .. text
end

local function backend(v) return type(v) == 'function' or v == 'c' or compile.backends[v] ~= nil end

local checks, needs, order = {}, {}, {'fullgraph', 'dynamic', 'backend', 'mode', 'strict', 'outputs', 'onRecompile'}
checks.fullgraph, needs.fullgraph = boolean()
checks.dynamic, needs.dynamic = boolean()
checks.strict, needs.strict = boolean()
checks.outputs, needs.outputs = boolean()
checks.mode, needs.mode = oneOf('default', 'reduce-overhead', 'max-autotune')
checks.onRecompile, needs.onRecompile = functionOr(oneOf('warn', 'error', 'eager'))
checks.backend, needs.backend = backend, "'c', 'eager' or a function(graph, inputs)"

local function shown(v) return type(v) == 'string' and ("'%s'"):format(v) or type(v) == 'number' and tostring(v) or type(v) end

--- Returns the options (nil as an empty table); raises at `level` for an unknown name or a wrong value.
function M.check(opts, level)
   if opts == nil then return {} end
   if type(opts) ~= 'table' then error(('[compile] options; got %s, need a table'):format(type(opts)), level) end
   for name, v in pairs(opts) do
      local ok = checks[name]
      if not ok then error(('[compile] option; got %s, need %s'):format(shown(name), table.concat(order, ', ')), level) end
      if not ok(v) then error(('[compile] %s; got %s, need %s'):format(name, shown(v), needs[name]), level) end
   end
   return opts
end

--- True for a plain table with names in it: torch.compile{fullgraph = true}.
function M.looksLike(t)
   for name in pairs(t) do
      if type(name) ~= 'string' then return false end
   end
   return next(t) ~= nil
end

return M
