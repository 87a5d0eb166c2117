-- optim: optimisers over flat parameter vectors (f, x -> x, losses). One function or class a file, loaded at first use.
--
-- Every method is called as method(opfunc, x, config, state): opfunc(x) returns f(x) and df/dx at x; x is changed in place;
-- config holds settings; state (default: config itself) is kept between calls. Returns x and a table of the values of f seen.

require 'torch'

optim = optim or {}

local absent = {}

setmetatable(optim, {__index = function(_, name)
   if type(name) ~= 'string' or absent[name] then return nil end
   local module = 'optim.' .. name
   if not package.searchpath(module, package.path) then
      absent[name] = true
      return nil
   end
   local value = require(module)
   if rawget(optim, name) == nil then rawset(optim, name, value) end
   return rawget(optim, name)
end})

return optim
