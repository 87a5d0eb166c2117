-- TestSuite: a table of test functions that refuses a name given twice.
local C = require 'relume.core'
local torch = C.torch

--- A suite: assign functions by name; torch.Tester:add takes it.
function torch.TestSuite()
   local tests = {}
   return setmetatable({__tests = tests, __isTestSuite = true}, {
      __index = tests,
      __newindex = function(_, name, f)
         if tests[name] ~= nil then error('Test ' .. tostring(name) .. ' is already defined.', 2) end
         if type(f) == 'table' then error('[TestSuite] Nested tables of tests are not supported; got one under ' .. tostring(name), 2) end
         if type(f) ~= 'function' then error('[TestSuite] test; got ' .. type(f) .. ' under ' .. tostring(name) .. ', need a function', 2) end
         tests[name] = f
      end})
end

return torch.TestSuite
