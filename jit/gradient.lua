-- Gradients while capturing: functions of the core that the Lua side of autograd calls (function -> model).

local value = require 'relume.jit.value'
local call = require 'relume.jit.call'
local okC, C = pcall(require, 'relume.core')

if not okC then return {} end
local const, FALSE, NIL = value.const, value.FALSE, value.NIL

-- True when the gradient of some y runs into what made an input outside.
local function reachesOutside(v, ys)
   for _, y in pairs(ys) do
      if C.torch.isTensor(y) and (C.history(y) == v.history0 or C.reaches(y, {v.entry})[1]) then return true end
   end
   return false
end

-- Gradients that run through an input into code outside are left to eager, which knows the way on.
local function historyInside(ctx, args)
   local raws = {}
   for i = 1, args.n do raws[i] = ctx:raw(args[i]) end -- they are inputs from now on
   local ys = type(raws[1]) == 'table' and raws[1] or {raws[1]}
   local again = type(raws[args.n]) == 'table' and raws[args.n].createGraph -- what is differentiated again must not stand on compiled nodes
   for _, v in ipairs(ctx.inputs) do
      if v.facts.history and reachesOutside(v, ys) then ctx:brk(again and 'grad-escapes' or 'history', v.src.text) end
   end
end

local methods = debug.getmetatable(C.constructors['torch.DoubleTensor']())

local function gradientOf(name)
   return function(ctx, args)
      local v = args[1]
      if v and v.k == 'tensor' then
         ctx:fake(v)
         ctx:inputGradient(v)
      end
      return ctx:callC(methods[name], args, name)
   end
end
call.models[methods.grad], call.models[methods.setGrad] = gradientOf 'grad', gradientOf 'setGrad'

call.models[methods.backward] = function(ctx, args)
   historyInside(ctx, args)
   for _, v in ipairs(ctx.inputs) do ctx:inputGradient(v) end
   return ctx:callC(methods.backward, args, 'backward')
end

call.models[C.grad] = function(ctx, args)
   historyInside(ctx, args)
   return ctx:callC(C.grad, args, 'grad')
end

-- Captured code must not see that it is captured.
call.models[C.isFake] = function() return {FALSE, n = 1} end

-- The check of all tensors guards the default type.
call.models[C.getDefaultDtype] = function() return {const(C.getDefaultDtype()), n = 1} end

-- x:totable() of one element without a dimension is a number; others need values.
local totable = debug.getmetatable(C.constructors['torch.DoubleTensor']()).totable
local function totableModel(ctx, args)
   local v = args[1] or NIL
   if v.k == 'gnum' then return {v, n = 1} end
   if v.k ~= 'tensor' then ctx:raise 'bad argument #1 to totable' end
   local _, grad, sizes = C.tensorFacts(v.real or v.fake)
   if #sizes > 0 or grad then ctx:brk('needs-values', 'totable') end
   return {{k = 'gnum', fake = ctx:fake(v)}, n = 1}
end
call.models[totable] = totableModel
if C.torch.totable then call.models[C.torch.totable] = totableModel end

-- C.custom(inputs, outputs, backward): the engine calls back into the evaluator with fakes. The tape of the fakes holds the callback, so it
-- may hold the capture only while that lasts.
call.models[C.custom] = function(ctx, args)
   ctx:location()
   local held = {ctx = ctx, f = args[3] or NIL}
   ctx.callbacks = ctx.callbacks or {}
   table.insert(ctx.callbacks, held)
   C.custom(ctx:raw(args[1]), ctx:raw(args[2]), function(...)
      local now, values = held.ctx, {n = select('#', ...)}
      for i = 1, values.n do values[i] = now:result((select(i, ...))) end
      local r = now:call(held.f, values)
      local out = {}
      for i = 1, r.n do out[i] = now:raw(r[i] or NIL) end
      return unpack(out, 1, r.n)
   end)
   return {n = 0}
end

return {}
