-- nn: neural network modules. One class a file, loaded at first use: by its name in nn (nn.Linear -> nn/Linear.lua), as a parent in
-- torch.class, or by a file that holds an object of it.

require 'torch'
require 'paths'

nn = nn or {}

local types = require('relume.core').metatables
local absent = {}

-- The class's constructor table; nil for names that are no class of ours, and while its file runs.
local function load(_, name)
   if type(name) ~= 'string' or absent[name] or not (name:find '^%u' or name == 'hessian') then return nil end
   local module = 'nn.' .. name
   absent[name] = true
   if package.loaded[module] then return rawget(nn, name) end -- or being loaded
   if not package.searchpath(module, package.path) then return nil end
   require(module)
   return rawget(nn, name)
end

-- Under `th`, pairs(nn) loads every class first (a program that wraps them all); a program run by luajit sees those used so far.
local function all(t)
   local folder = package.searchpath('nn.Module', package.path):match '^(.*)/'
   for file in paths.iterfiles(folder) do
      local name = file:match '^(%u%w*)%.lua$'
      if name then load(nil, name) end
   end
   return next, t, nil
end

setmetatable(nn, {__index = load, __pairs = all})
setmetatable(types, {__index = function(_, typename)
   local name = type(typename) == 'string' and typename:match '^nn%.(%u%w*)$'
   if name and load(nil, name) then return rawget(types, typename) end
end})

nn.utils = require 'nn.utils'
nn.tables = require 'nn.tables'
require 'nn.Module'
require 'nn.Criterion'
require 'nn.Container'
require 'nn.Sequential'

return nn
