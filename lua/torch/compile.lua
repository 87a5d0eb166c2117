-- Compile: torch.compile, torch.explain and torch.compiler come from relume.jit, loaded at first use.
local C = require 'relume.core'
local torch = C.torch
local jit = require 'relume.jit'
for _, name in ipairs {'compile', 'explain', 'compiler', 'markDynamic'} do
   if rawget(torch, name) == nil then rawset(torch, name, type(jit) == 'table' and jit[name] or nil) end
end
return jit
