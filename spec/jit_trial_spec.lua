-- Trials: a function whose graphs between breaks do not pay runs eagerly after some calls, says so in torch.explain, and stays right.

local compile = require 'relume.jit.compile'

describe('a function that always breaks', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   local function positive(x)
      local n = 0
      for i = 1, 8 do
         if x[i] > 0 then n = n + 1 end
      end
      return n
   end

   it('runs eagerly when its graphs are too small to pay, with a reason', function()
      local c = torch.compile(positive)
      for i = 1, 100 do
         local x = torch.randn(8)
         assert.equal(positive(x), c(x), i)
      end
      local report = torch.explain(c, torch.randn(8))
      assert.truthy(report.small:find('too small to pay', 1, true))
      assert.truthy(tostring(report):find('us compiled', 1, true))
      assert.is_true(report.breaks >= 1)
      torch.compiler.reset(c)
      assert.is_nil(torch.explain(c, torch.randn(8)).small)
      assert.equal(8, c(torch.ones(8)))
   end)

   it('has the same effects in calls that are timed', function()
      local calls, log = 0, {}
      local c = torch.compile(function(x)
         calls = calls + 1
         x:add(1)
         log[#log + 1] = tostring(x:sum())
         if calls % 7 == 0 then error 'seventh' end
         return x:mul(1)
      end)
      local x = torch.zeros(1)
      for i = 1, 100 do
         local ok = pcall(c, x)
         assert.equal(i % 7 ~= 0, ok)
         assert.equal(i, calls)
         assert.equal(i, x[1])
         assert.equal(tostring(i), log[i])
      end
   end)

   it('is not tried without breaks', function()
      local c = torch.compile(function(x) return x + 1 end)
      for _ = 1, 100 do c(torch.ones(1)) end
      assert.is_nil(compile.states[c].trial or compile.states[c].small)
   end)
end)
