-- Coroutines that live and die inside a captured path: their bodies are evaluated in coroutines of the evaluator's own (function -> model).
--
-- While one runs, the context's frames are its frames. One that is still there where the path is left cannot be rebuilt, and a graph break inside
-- of one cannot be resumed behind: then the break is where it was made, and it is a coroutine of the real VM.

local value = require 'relume.jit.value'
local call = require 'relume.jit.call'
local breaks = require 'relume.jit.breaks'

local const, NIL, TRUE, FALSE = value.const, value.NIL, value.TRUE, value.FALSE
local models = call.models

local function create(ctx, f, name)
   if not f or f.k ~= 'func' then ctx:brk('coroutine', 'coroutine.' .. name) end
   local co = {status = 'suspended', frames = {}, at = ctx.frames[#ctx.frames].at}
   co.thread = coroutine.create(function(args)
      local r = ctx:call(f, args)
      co.status = 'dead'
      return r
   end)
   return co
end

-- What a body raised: the path has to stop where its coroutine was made, unless the program's own error is a result.
local function failed(ctx, co, e, catch)
   if catch and breaks.isRaised(e) and (e.exact or not e.runtime) then return {FALSE, e.value, n = 2} end
   ctx.coroutineAt = math.min(ctx.coroutineAt or co.at, co.at)
   if breaks.isRaised(e) then ctx:brk('coroutine', 'an error in one') end
   error(e, 0)
end

-- Runs co until it yields or ends -> its values. catch: errors are results, as of coroutine.resume.
local function resume(ctx, co, args, catch)
   if co.status ~= 'suspended' then
      local text = ('cannot resume %s coroutine'):format(co.status)
      if not catch then ctx:raise(text) end
      return {FALSE, const(text), n = 2}
   end
   local frames, running = ctx.frames, ctx.running
   if running then running.status = 'normal' end
   ctx.frames, ctx.running, co.status = co.frames, co, 'running'
   local ok, r = coroutine.resume(co.thread, args)
   ctx.frames, ctx.running = frames, running
   if running then running.status = 'running' end
   if not ok then
      co.status = 'dead'
      return failed(ctx, co, r, catch)
   end
   if not catch then return r end
   local out = {TRUE, n = r.n + 1}
   for i = 1, r.n do out[i + 1] = r[i] or NIL end
   return out
end

local function rest(args)
   local r = {n = math.max(args.n - 1, 0)}
   for i = 1, r.n do r[i] = args[i + 1] end
   return r
end

local function threadArg(ctx, args, name)
   local v = args[1] or NIL
   if v.k ~= 'thread' then ctx:brk('coroutine', 'coroutine.' .. name) end
   return v.co
end

models[coroutine.create] = function(ctx, args)
   local co = create(ctx, args[1], 'create')
   co.value = {k = 'thread', co = co, at = co.at}
   return {co.value, n = 1}
end

models[coroutine.wrap] = function(ctx, args)
   local co = create(ctx, args[1], 'wrap')
   co.value = {k = 'thread', co = co, at = co.at}
   return {{k = 'func', at = co.at, model = function(c, list) return resume(c, co, list) end}, n = 1}
end

models[coroutine.resume] = function(ctx, args) return resume(ctx, threadArg(ctx, args, 'resume'), rest(args), true) end

models[coroutine.status] = function(ctx, args) return {const(threadArg(ctx, args, 'status').status), n = 1} end

models[coroutine.yield] = function(ctx, args)
   local co = ctx.running
   if not co then ctx:brk('coroutine', 'coroutine.yield') end
   co.status = 'suspended'
   return coroutine.yield(args)
end

models[coroutine.running] = function(ctx)
   if not ctx.running then ctx:brk('coroutine', 'coroutine.running') end
   return {ctx.running.value, n = 1}
end

return {}
