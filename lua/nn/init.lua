-- nn: neural network modules. One class a file, loaded at first use (nn.Linear -> nn/Linear.lua).

require 'torch'

nn = nn or {}

local absent = {}

-- Loads the class's file; nil for names that are no class of ours.
local function load(_, name)
   if type(name) ~= 'string' or absent[name] or not name:find '^%u' then return nil end
   local module = 'nn.' .. name
   if not package.searchpath(module, package.path) then
      absent[name] = true
      return nil
   end
   require(module)
   return rawget(nn, name)
end

setmetatable(nn, {__index = load})

nn.utils = require 'nn.utils'
require 'nn.Module'
require 'nn.Criterion'
require 'nn.Container'
require 'nn.Sequential'

return nn
