-- Autograd: torch.autograd.grad, torch.autograd.Function, torch.grad (Lua functions -> gradients over the core's tape).
local C = require 'relume.core'
local torch = C.torch
local autograd = {}
rawset(torch, 'autograd', autograd)

--- Gradients of outputs with respect to inputs: grad({ys}, {xs} [, {dys} [, {retain =, createGraph =, allowUnused =}]]) -> {dxs}.
-- An output without a dy must have one element. An unused input raises, or gives false with allowUnused.
function autograd.grad(ys, xs, dys, options)
   return C.grad(ys, xs, dys, options)
end

-- Nested tables of parameters: every tensor becomes a leaf that requires grad; leaves are listed in a fixed order.
local function sortedKeys(t)
   local keys = {}
   for k in pairs(t) do keys[#keys + 1] = k end
   table.sort(keys, function(a, b)
      local ta, tb = type(a), type(b)
      if ta ~= tb then return ta < tb end
      if ta == 'number' or ta == 'string' then return a < b end
      return tostring(a) < tostring(b)
   end)
   return keys
end

local function leavesOf(value, list)
   if torch.isTensor(value) then
      local leaf = value:detach():requiresGrad(true)
      list[#list + 1] = leaf
      return leaf
   end
   if type(value) ~= 'table' then return value end
   local copy = {}
   for _, k in ipairs(sortedKeys(value)) do copy[k] = leavesOf(value[k], list) end
   return setmetatable(copy, getmetatable(value))
end

-- The same shape with gradients in place of tensors, in the order leavesOf met them.
local function rebuild(value, grads, at)
   if torch.isTensor(value) then
      at[1] = at[1] + 1
      return grads[at[1]] or value:clone():zero()
   end
   if type(value) ~= 'table' then return nil end
   local out = {}
   for _, k in ipairs(sortedKeys(value)) do out[k] = rebuild(value[k], grads, at) end
   return out
end

--- torch.grad(f [, {createGraph =, argument =}]): function that returns the gradients of f's first result with respect to its first
-- argument (a tensor or nested tables of tensors, shape kept), then f's results.
function torch.grad(f, options)
   options = options or {}
   local which = options.argument or 1
   return function(...)
      local args, leaves = {n = select('#', ...), ...}, {}
      args[which] = leavesOf(args[which], leaves)
      local was = C.setGradEnabled(true)
      local results = {pcall(f, unpack(args, 1, args.n))}
      C.setGradEnabled(was)
      if not results[1] then error(results[2], 0) end
      local loss = results[2]
      if not torch.isTensor(loss) then
         error('[grad] first result of the function; got ' .. torch.type(loss) .. ', need a loss that depends on the parameters', 2)
      end
      local grads = C.grad({loss}, leaves, nil, {createGraph = options.createGraph, allowUnused = true})
      local out = rebuild(args[which], grads, {0})
      for k = 2, #results do
         if torch.isTensor(results[k]) and not options.createGraph then
            local t = results[k]:detach()
            results[k] = t:dim() == 0 and t:nElement() == 1 and not C.isFake(t) and t:totable() or t
         end
      end
      return out, unpack(results, 2, table.maxn(results))
   end
end

autograd.noGrad, autograd.enableGrad = torch.noGrad, torch.enableGrad

local Function = torch.class('torch.autograd.Function')

--- A differentiable function written in Lua:
--
--    local Exp = torch.autograd.Function.extend('Exp')
--    function Exp.forward(ctx, x) ctx.y = torch.exp(x) return ctx.y end
--    function Exp.backward(ctx, dy) return torch.cmul(dy, ctx.y) end
--    local y = Exp.apply(x)
--
-- forward runs without a tape; backward gets one gradient an output and returns one an input (nil: none).
function Function.extend(name)
   local class = {name = name or 'Function'}
   function class.apply(...)
      return Function.run(class, ...)
   end
   return setmetatable(class, {__call = function(_, ...) return class.apply(...) end})
end

local function anyRequires(inputs)
   for _, t in ipairs(inputs) do
      if t:requiresGrad() then return true end
   end
   return false
end

--- Applies a class made by extend to its arguments.
function Function.run(class, ...)
   local ctx, args, inputs, slots = {}, {n = select('#', ...), ...}, {}, {}
   for i = 1, args.n do
      if torch.isTensor(args[i]) then
         inputs[#inputs + 1] = args[i]
         slots[#slots + 1] = i
      end
   end
   local need = C.gradEnabled() and anyRequires(inputs)
   local outputs = {torch.noGrad(class.forward, ctx, ...)}
   if not need then return unpack(outputs) end
   local made = {}
   for k, y in ipairs(outputs) do
      if not torch.isTensor(y) then error('[' .. class.name .. '] output ' .. k .. '; got ' .. torch.type(y) .. ', need tensor', 2) end
      outputs[k] = y:detach()
      made[k] = outputs[k]
   end
   C.custom(inputs, made, function(...)
      local grads, dx = {class.backward(ctx, ...)}, {}
      for k, slot in ipairs(slots) do dx[k] = grads[slot] or false end
      return unpack(dx, 1, #slots)
   end)
   return unpack(outputs)
end

return autograd
