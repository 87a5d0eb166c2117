-- Checks: the guards of a path alone, for those who ask which fail, what each costs, and what the plan is given (context -> functions).

local emit = require 'relume.jit.emit'
local runtime = require 'relume.jit.runtime'

local M = {}
local fmt, concat = string.format, table.concat

-- An emitter with the guards and the check of all tensors. mode: 'diagnose', 'measure', or nil: as a call runs them.
local function checks(ctx, proto, mode)
   local e = emit.new(ctx, proto.params, proto.vararg)
   e.mode = mode
   e:guards()
   e:tensors()
   e:distinct()
   return e
end

local function nothing() end

local function loaded(e, text, F)
   local G = {}
   local fn = assert(loadstring(text, '=guards'))(e.K, {}, e.T or {}, F, nil, nil, e.tguard, nothing, runtime, nil, {}, {[0] = emit.holeValues(e)}, G)
   emit.joinUpvalues(fn, e.ups, G)
   return fn
end

--- A function that runs all guards that can be run and returns those that fail, as a list of {guard, the value it looked at}.
function M.diagnose(ctx, proto)
   local e, F = checks(ctx, proto, 'diagnose'), {x = {}}
   local fn = loaded(e, e:source(), F)
   return function(...)
      for i = #F, 1, -1 do F[i] = nil end
      F.x = {}
      fn(...)
      local list = {}
      for i, k in ipairs(F) do list[i] = {e.guardInfo[k], F.x[k]} end
      F.x = {}
      return list
   end
end

local ROUNDS = 1000

-- Text that runs each guard once, and then many times under a clock.
local function measuring(e)
   local lines, from = {'local t__'}, 0
   for i, to in ipairs(e.groups or {}) do
      local group = concat(e.head, '\n', from + 1, to)
      lines[#lines + 1] = fmt('%s\nt__ = clock()\nfor i__ = 1, %d do\n%s\nend\nF[%d] = clock() - t__', group, ROUNDS, group, i)
      from = to
   end
   lines[#lines + 1] = fmt('t__ = clock()\nfor i__ = 1, %d do end\nF[0] = clock() - t__', ROUNDS)
   return lines
end

--- Nanoseconds of each guard, run by itself in Lua's interpreter, and of all of them together as a call runs them. The arguments are those of the
-- captured call.
function M.measure(ctx, proto, ...)
   local each, all, F = checks(ctx, proto, 'measure'), checks(ctx, proto), {}
   if #each.guardInfo == 0 then return {}, 0 end
   each.head = measuring(each)
   local fn = loaded(each, 'local clock = (select(9, ...)).clock\n' .. each:source(), F)
   jit.off(fn, true)
   fn(...)
   for i = 1, #each.guardInfo do F[i] = F[i] and math.max(F[i] - F[0], 0) / ROUNDS * 1e9 end
   fn = loaded(all, all:source(), F)
   for _ = 1, 300 do fn(...) end
   local best = math.huge
   for _ = 1, 5 do
      local start = runtime.clock()
      for _ = 1, ROUNDS / 5 do fn(...) end
      best = math.min(best, runtime.clock() - start)
   end
   return F, best / (ROUNDS / 5) * 1e9
end

--- A function that returns the plan's inputs, tensors, then numbers, as a table; and all tensors that the path looks at, as another.
function M.inputs(ctx, proto)
   local e = checks(ctx, proto, 'diagnose')
   local args = {unpack(e.inputs or {})}
   for _, x in ipairs(ctx.numbers) do args[#args + 1] = e:expr(x) end
   e.returns = fmt('{%s}, {%s}', concat(args, ', '), concat(e.names or {}, ', '))
   return loaded(e, e:source(), {x = {}})
end

return M
