-- Modules: torch.compile(net) gives back the same object, whose forward and backward are compiled. No field is added, so files, clones and
-- parameter names stay as they are: the class's method looks its object up in a table with weak keys.

local compile = require 'relume.jit.compile'
local call = require 'relume.jit.call'
local share = require 'relume.jit.share'

local M = {}
local compiled = setmetatable({}, {__mode = 'k'}) -- module -> {forward =, backward =}
local patched = {}                                 -- original method of a class, by metatable and name
M.compiled = compiled

-- The metatable in the class chain that holds a method itself.
local function owner(mt, name)
   while mt and rawget(mt, name) == nil do mt = getmetatable(mt) end
   return mt
end

-- Makes a class's method look for the compiled form of its object first.
local function patch(mt, name)
   local key = owner(mt, name)
   if not key then return end
   patched[key] = patched[key] or {}
   if patched[key][name] then return patched[key][name] end
   local method = rawget(key, name)
   patched[key][name] = method
   local function look(self, ...)
      local c = compiled[self]
      if c and c[name] then return c[name](self, ...) end
      return method(self, ...)
   end
   rawset(key, name, look)
   call.wrapped[look] = method -- captured code evaluates the method itself, whatever object it is called on
   return method
end

-- Functions with fixed parameters, as the compiled form of a method that may be shared by all objects of a class.
local makers = {
   forward = function(method) return function(self, input) return method(self, input) end end,
   backward = function(method) return function(self, input, gradOutput, scale) return method(self, input, gradOutput, scale) end end,
}

--- Compiles a module's or criterion's forward and backward; returns the module.
function M.compile(net, opts)
   local mt = getmetatable(net)
   local c = compiled[net] or {}
   for name, make in pairs(makers) do
      local method = patch(mt, name)
      if method and not c[name] then
         c[name] = compile.compile(make(method), opts)
         share.join(compile.states[c[name]], method)
      end
   end
   compiled[net] = c
   return net
end

--- The compiled forward of a module, nil when it was not compiled.
function M.forward(net) return compiled[net] and compiled[net].forward end

return M
