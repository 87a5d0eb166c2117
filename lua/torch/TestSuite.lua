-- TestSuite: a table of tests that keeps their order and refuses doubles.
local C = require 'relume.core'
local torch = C.torch

--- A suite: assign functions (or suites, or tables of functions) by name; torch.Tester:add runs them.
function torch.TestSuite()
   local tests = {}
   return setmetatable({__tests = tests, __isTestSuite = true}, {
      __index = tests,
      __newindex = function(_, name, f)
         if tests[name] ~= nil then error('[TestSuite] test defined twice; got ' .. tostring(name) .. ', need a new name', 2) end
         tests[name] = f
      end})
end

return torch.TestSuite
