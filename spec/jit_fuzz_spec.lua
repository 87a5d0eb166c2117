-- A short run of the fuzzer of capture; the seed is printed with what differs.

local fuzz = require 'fuzz.capture'

describe('random closures', function()
   it('give the same results and effects eagerly and compiled', function()
      local text = fuzz.fuzz(200, 20000, 0.01)
      assert.is_nil(text, text)
   end)
end)
