-- assert.compiles(f, {graphs = 1, kernels = n, breaks = 0}, ...): what torch.explain counts for f(...), so that performance is protected
-- without a clock. Fields left out are not looked at; a message lists the breaks.
local assert, say = require 'luassert', require 'say'

say:set('assertion.compiles.positive', 'Expected another compilation:\n%s')
say:set('assertion.compiles.negative', 'Expected another compilation than:\n%s')

local function breaksOf(report)
   local lines = {}
   for _, b in ipairs(report.list or report.reasons or {}) do
      local text = type(b) == 'table' and ('%s (%s)'):format(b.reason or b.sentence or b.id, b.where or b.loc or '?') or tostring(b)
      lines[#lines + 1] = '  break: ' .. text
   end
   return lines
end

local function compiles(state, arguments)
   local f, want = arguments[1], arguments[2]
   local report = torch.explain(f, unpack(arguments, 3, arguments.n))
   local lines, ok = breaksOf(report), true
   for field, count in pairs(want) do
      local got = report[field]
      if type(got) == 'table' then got = #got end
      if got ~= count then
         ok = false
         table.insert(lines, 1, ('  %s: got %s, need %s'):format(field, tostring(got), tostring(count)))
      end
   end
   state.failure_message = table.concat(lines, '\n')
   arguments[1], arguments.n = table.concat(lines, '\n'), 1
   return ok
end

assert:register('assertion', 'compiles', compiles, 'assertion.compiles.positive', 'assertion.compiles.negative')
