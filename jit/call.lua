-- Calls: Lua functions are evaluated, library functions folded or modelled, C functions on tensors called on fakes
-- (function value, argument values -> result values).

jit.off(true, true) -- each path is evaluated once: traces would not pay, and would push out the program's

local value = require 'relume.jit.value'
local bytecode = require 'relume.jit.bytecode'
local ops = require 'relume.jit.ops'
local Context = require 'relume.jit.context'
local okC, C = pcall(require, 'relume.core')

local M = {}

M.models = {}                                      -- C or Lua function -> function(ctx, args) that returns results
M.pure = {}                                        -- C function without effects -> name: folds when all arguments are constants
M.disabled = setmetatable({}, {__mode = 'k'})      -- functions and objects marked by torch.compiler.disable
M.wrapped = {}                                     -- compiled function -> the function it was made from (set by compile.lua)
M.extra = okC and {[C.grad] = 'grad'} or {} -- functions of the core that work on fakes
M.storage = {}                                     -- methods of storages: 'read' or 'write'
M.wholes = {storage = true, storageOffset = true, resize = true, resizeAs = true, isSetTo = true, data = true, cdata = true} -- what looks behind a window
M.refused = {}                                     -- C function -> {break id, detail}

local function notCallable(ctx, fn)
   ops.operandError(ctx, 'call', fn)
end

--- True when the function, or the object whose method it is, is marked by torch.compiler.disable.
function Context:isDisabled(fn, args)
   if M.disabled[fn.real] then return true end
   local object = args[1]
   if not object or object.k ~= 'table' or not object.real or not M.disabled[object.real] then return false end
   self:needIdentity(object)
   return true
end

--- The Lua function value that a call of fn evaluates, with its arguments, or nil when fn is something else.
function Context:resolve(fn, args)
   local called = fn
   if fn.k == 'table' or fn.k == 'tensor' or fn.k == 'udata' then
      local h = ops.metamethod(self, fn, '__call')
      if not h or h.k ~= 'func' then return end
      local list = {n = args.n + 1, fn}
      for i = 1, args.n do list[i + 1] = args[i] end
      fn, args = h, list
   end
   if fn.k ~= 'func' then return end
   if fn.model then return nil, nil, fn, args end
   if not fn.real then return fn, args end
   self:needFunc(fn)
   local inner = M.wrapped[fn.real]
   if inner then return self:constant(inner), args end
   if M.models[fn.real] or self:isDisabled(fn, args) or not bytecode.id(fn.real) then
      if fn ~= called then return nil, nil, fn, args end
      return
   end
   return fn, args
end

--- Calls a value.
function Context:call(fn, args)
   local target, targs, cfn, cargs = self:resolve(fn, args)
   if target then return self:inline(target, targs) end
   local via = self.via
   self.via = nil
   if cfn then fn, args = cfn, cargs end
   if fn.k ~= 'func' then notCallable(self, fn) end
   if fn.model then return fn.model(self, args) end
   local real = fn.real
   if self:isDisabled(fn, args) then self:brk('disabled', fn.src and fn.src.text or 'a function') end
   local model = M.models[real]
   if model then return model(self, args, via) end
   return self:callC(real, args, fn.src and fn.src.text)
end

-- Raw arguments ----------------------------------------------------------------------------------------------------------------

local function rawTable(ctx, t, numbers, depth)
   if depth > 8 then ctx:brk('needs-values', 'a deeply nested table') end
   local r = {}
   for _, key in ipairs(ctx:keys(t)) do
      local k = ctx:keyValue(key)
      if k.k ~= 'const' then ctx:brk('table-key', 'in an argument') end
      r[key] = ctx:raw(ctx:rawget(t, key), numbers, depth + 1)
   end
   return r
end

--- The raw Lua value to give to a C function. numbers: numbers that change become inputs of the graph.
function Context:raw(v, numbers, depth)
   local k = v.k
   if k == 'const' then return self:need(v) end
   if k == 'num' then
      self:needNum(v)
      if numbers and self:changes(v) then
         numbers.used = true
         return self:numberInput(v)
      end
      if self.folding == 'string' then return self:textOf(v) end
      return self:bake(v)
   end
   if k == 'tensor' then return self:fake(v) end
   if k == 'gnum' then return v.fake end
   if k == 'table' then return rawTable(self, v, numbers, depth or 0) end
   if k == 'udata' then
      self:needIdentity(v)
      return v.real
   end
   self:brk('callback', self.calling or 'a C function')
end

local function raws(ctx, args, numbers)
   local r = {}
   for i = 1, args.n do r[i] = ctx:raw(args[i], numbers) end
   return r
end

-- Results ----------------------------------------------------------------------------------------------------------------------

--- The value of what a C function returned while capturing.
function Context:result(x)
   local t = type(x)
   if t == 'table' then
      local r = value.newTable()
      for key, item in pairs(x) do self:rawset(r, key, self:result(item)) end
      return r
   end
   if t == 'userdata' then return self:tensorResult(x) end
   if t == 'function' then return self:constant(x) end
   if t == 'number' then return self:sizeNumber(x) end
   return value.const(x)
end

local function pack(...) return {n = select('#', ...), ...} end

local function constants(args)
   for i = 1, args.n do
      local k = args[i].k
      if k ~= 'const' and k ~= 'num' then return false end
   end
   return true
end

local function attempt(ctx, fn, args, numbers)
   local r = raws(ctx, args, numbers)
   return pack(pcall(fn, unpack(r, 1, args.n)))
end

local function failed(ctx, name, message)
   if type(message) == 'string' and message:find('[capture] needs values', 1, true) then ctx:brk('needs-values', name) end
   if type(message) == 'string' then message = message:gsub('^.-:%d+: ', '') end
   ctx:raise(tostring(message))
end

--- Calls a C function: on fakes when it can be captured, folded when it is pure.
function Context:callC(fn, args, name)
   local pure = M.pure[fn]
   self.folding = pure and (pure:match '^string' or 'number') or nil
   local storage = M.storage[fn]
   if storage and args.n > 0 and args[1].k == 'udata' then return self:storageMethod(fn, args, storage) end
   local known = okC and C.capturable[fn] or M.extra[fn] or M.pure[fn]
   name = type(known) == 'string' and known or name or 'a C function'
   local refused = M.refused[fn]
   if refused then self:brk(refused[1], refused[2]) end
   if not known then self:brk('c-function', name) end
   self.calling = name
   if self.window and M.wholes[name] then self:fixWindows() end
   local special = self:tensorMethod(fn, name, args)
   if special then return special end
   local view = self:outerView(fn, name, args)
   if view then return {view, n = 1} end
   if not M.pure[fn] then self:location() end
   local numbers = {}
   local r = attempt(self, fn, args, not constants(args) and numbers or nil)
   if not r[1] and numbers.used then r = attempt(self, fn, args) end
   if not r[1] then failed(self, name, r[2]) end
   if args.n > 0 and args[1].k == 'tensor' and rawequal(r[2], args[1].fake) then self:wroteHistory(args[1]) end
   local out = {n = r.n - 1}
   self.aliasing = name == 'detach' and args[1].k == 'tensor'
   for i = 1, out.n do out[i] = self:result(r[i + 1]) end
   if name == 'size' then self:nameSize(args, out[1]) end
   self.aliasing = nil
   return out
end

--- A method of a storage, called on the real one: capture reads it, or writes one that captured code made.
function Context:storageMethod(fn, args, kind)
   local s = args[1]
   if kind == 'write' and not s.made then self:brk('side-effect', 'a change of a storage') end
   self:contents(s)
   local r = attempt(self, fn, args)
   if not r[1] then failed(self, 'a method of a storage', r[2]) end
   local out = {n = r.n - 1}
   for i = 1, out.n do out[i] = self:result(r[i + 1]) end
   return out
end

return M
