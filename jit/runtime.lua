-- Runtime: what generated functions call besides Lua's own library (names -> functions).

local bytecode = require 'relume.jit.bytecode'
local okC, C = pcall(require, 'relume.core')

local rt = {
   FAILED = require('relume.jit.fail').FAILED,
   recordState = require('relume.jit.value').recordState,
   openRecord = function(raw, module) return require('relume.jit.records').open(raw, module) end,
   tableNew = require('relume.jit.value').tableNew,
   dgetmetatable = debug.getmetatable, dsetmetatable = debug.setmetatable,
   setupvalue = debug.setupvalue, upvaluejoin = debug.upvaluejoin, upvalueid = debug.upvalueid,
   protoOf = function(f) return type(f) == 'function' and bytecode.id(f) or nil end,
}

--- A variable that closures share, as a function that reads and writes it (see box.lua); it is the function's first upvalue.
function rt.newCell()
   local v
   local function cell(op, x, i)
      if op == nil then return v end
      if op then v = x else debug.upvaluejoin(x, i, cell, 1) end
   end
   return cell
end

--- f(x, ...), a view of x; nil when there is none.
function rt.viewAt(f, x, ...)
   local ok, y = pcall(f, x, ...)
   return ok and y or nil
end

--- Value of upvalue i.
function rt.upvalueOf(f, i)
   local _, v = debug.getupvalue(f, i)
   return v
end

--- True when the table's keys are those of the list, in the order of next.
function rt.sameKeys(t, keys)
   local i = 0
   for k in next, t do
      i = i + 1
      if not rawequal(k, keys[i]) then return false end
   end
   return keys[i + 1] == nil
end

--- True when a storage holds the numbers of a list.
function rt.sameContents(s, list)
   if #s ~= #list then return false end
   for i = 1, #list do
      if s[i] ~= list[i] then return false end
   end
   return true
end

rt.clock = okC and C.clock or os.clock

if okC then
   local x = C.torch.DoubleTensor and C.torch.DoubleTensor() or C.constructors['torch.DoubleTensor']()
   local mt = debug.getmetatable(x)
   rt.viewOf = C.viewOf
   rt.dropAll, rt.dropHeld = C.dropAll, C.dropHeld
   rt.setAll, rt.grad, rt.setGrad, rt.requiresGrad = C.setAll, mt.grad, mt.setGrad, mt.requiresGrad
   rt.item, rt.clone = C.item, mt.clone
   --- f() in the gradient mode of now, then the mode that was.
   function rt.withGrad(was, f)
      local function finish(ok, ...)
         C.setGradEnabled(was)
         if not ok then error((...), 0) end
         return ...
      end
      return finish(pcall(f))
   end
   rt.gradEnabled, rt.setGradEnabled = C.gradEnabled, C.setGradEnabled
   rt.cloneStorage = function(s) return C.torch.LongStorage(s:totable()) end
end

return rt
