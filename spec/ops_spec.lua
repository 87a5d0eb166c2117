-- The op table, row by row: dtype x layout, eager and compiled, against the reference in plain Lua.
local ops = require 'support.ops'

-- Rows that draw random numbers have specs of their own (spec/ops_random_spec.lua).
local function judge(complaints)
   local shown = { unpack(complaints, 1, 6) }
   if #complaints > 6 then shown[7] = ('... and %d more'):format(#complaints - 6) end
   assert.equal('', table.concat(shown, '\n'))
end

describe('ops.def', function()
   for _, row in ipairs(ops.rows) do
      if row.kind ~= 'RAND' and not row.random then
         describe(row.name, function()
            it('has a reference', function()
               assert.is_true(ops.hasReference(row))
            end)
            if not ops.hasReference(row) then return end

            it('runs eagerly', function()
               local complaints = {}
               for _, case in ipairs(ops.cases(row)) do
                  local ok, results = pcall(ops.eager, case)
                  if ok then ops.compare(case, results, complaints)
                  else complaints[#complaints + 1] = ('%s(%s): %s'):format(row.name, case.label, results) end
               end
               judge(complaints)
            end)

            local family = ops.family[row.name]
            if family and family.dynamic then return end -- sizes depend on the data: a graph cannot hold it

            it('runs compiled', function()
               local complaints, cases = {}, ops.cover(ops.cases(row))
               for i, results in ipairs(ops.compiled(cases)) do ops.compare(cases[i], results, complaints) end
               judge(complaints)
            end)
         end)
      end
   end
end)
