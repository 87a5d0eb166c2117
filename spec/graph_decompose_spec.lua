-- Decompose: every row that is no primitive becomes primitives with the same values; broadcasting and mixed dtypes become explicit.
local C = require 'relume.core'
local graph = require 'support.graph'
local ops = require 'support.ops'

local function casesOf(row)
   local out = {}
   for _, case in ipairs(ops.cases(row)) do
      if case.dtype == 'Double' or case.dtype == 'Float' or (case.dtype == 'Long' and row.types ~= 'float') then out[#out + 1] = case end
      if #out == 12 then break end
   end
   return out
end

local function check(case)
   local tensors, at = {}, {}
   for k = 1, case.n do
      if case.inputs[k] then tensors[#tensors + 1] = case.inputs[k]; at[k] = #tensors end
   end
   local function f(...)
      local given, args = { ... }, {}
      for k = 1, case.n do args[k] = at[k] and given[at[k]] end
      return ops.call(case, args)
   end
   graph.check(f, function() return tensors end, nil, case.dtype == 'Float' and 2e-5 or 1e-9)
end

describe('decompose', function()
   for _, row in ipairs(ops.rows) do
      if row.formula and ops.hasReference(row) then
         it(row.name, function()
            for _, case in ipairs(casesOf(row)) do check(case) end
         end)
      end
   end

   it('makes broadcasting explicit', function()
      local g = graph.check(function(x, y) return C.op.add(x, y) end, function()
         return { torch.DoubleTensor(3, 4):fill(1), torch.DoubleTensor(1, 4):fill(2) }
      end)[3][2]
      assert.equal(1, g:ops().expand)
   end)

   it('types numbers and symbolic numbers', function()
      local g = graph.check(function(x, s) return x * s + 0.1 end, function() return { torch.FloatTensor(3, 4):fill(1) } end, { 0.3 }, 1e-6)[3][2]
      for _, node in ipairs((g:walk())) do
         if node.op == 'mul' or node.op == 'add' then
            for _, i in ipairs(node.inputs) do assert.equal('Float', g:walk()[i + 1].dtype) end
         end
      end
   end)

   it('computes with numbers alone in double', function()
      graph.check(function(x, s) return x * (s * 2 + 1) end, function() return { torch.FloatTensor(3, 4):fill(1) } end, { 0.3 }, 1e-6)
   end)

   it('rounds numbers to half types as eager does', function()
      graph.check(function(x) return (x * 0.1):float() end, function() return { torch.FloatTensor(8):fill(3.3):half() } end, nil, 0)
   end)
end)
