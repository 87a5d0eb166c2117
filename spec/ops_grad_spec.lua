-- Gradients of the op table by central differences in double; second order for the rows that are smooth.
local ops = require 'support.ops'
local layout = require 'support.layout'
local nd = require 'support.nd'

local step, tolerance = 1e-5, 2e-6

-- Numbers, flat, of the floating outputs of a case at given inputs, weighted: a scalar function of the inputs.
local function isFloat(t)
   local dtype = torch.typename(t):match 'torch%.(%w+)Tensor'
   return not ops.kind(dtype).int
end

-- Outputs that `differentiable` calls false have none.
local function cotangents(outs, differentiable)
   local list = {}
   ops.seed(11)
   for k, y in ipairs(outs) do
      if torch.typename(y) == 'torch.DoubleTensor' and not (differentiable and differentiable[k] == false) then list[k] = layout.tensor(ops.sample(layout.array(y).size, 'Double', -1, 1), 'Double') end
   end
   return list
end

local function weighted(outs, weights)
   local sum = 0
   for k, y in ipairs(outs) do
      if weights[k] then
         local a, w = layout.array(y), layout.array(weights[k])
         for i = 1, a.n do sum = sum + a[i] * w[i] end
      end
   end
   return sum
end

-- Gradients from the tape, by input; weights made by the first call are kept in `case.weights`.
local function tapeGradients(case, createGraph)
   local leaves, index = {}, {}
   local inputs = {}
   for k = 1, case.n do
      local t = case.inputs[k]
      local input = case.row.ins[k] or case.row.ins[1]
      if t and isFloat(t) and input.type ~= 'any' then
         t = t:clone():requiresGrad(true)
         leaves[#leaves + 1], index[#index + 1] = t, k
      end
      inputs[k] = t
   end
   local outs = { ops.call(case, inputs) }
   case.weights = case.weights or cotangents(outs, case.differentiable)
   local ys, dys = {}, {}
   for k, y in ipairs(outs) do
      if case.weights[k] and y:requiresGrad() then ys[#ys + 1], dys[#dys + 1] = y, case.weights[k] end
   end
   if #ys == 0 then return {}, index, leaves end
   return torch.autograd.grad(ys, leaves, dys, { allowUnused = true, createGraph = createGraph }), index, leaves
end

-- Central differences of f(inputs) with respect to input k.
local function differences(case, k, f)
   local a = layout.array(case.inputs[k])
   local kept = case.inputs[k]
   local out = nd.new(a.size, function(i)
      local value, x = {}, a[i]
      for side = 1, 2 do
         a[i] = x + (side == 1 and step or -step)
         case.inputs[k] = layout.tensor(a, 'Double')
         value[side] = f()
      end
      a[i] = x
      return (value[1] - value[2]) / (2 * step)
   end)
   case.inputs[k] = kept
   return out
end

local function complain(case, what, k, got, want, complaints, factor)
   if table.concat(got.size, 'x') ~= table.concat(want.size, 'x') then
      complaints[#complaints + 1] = ('%s(%s) %s of input %d: sizes; got %s, need %s'):format(case.row.name, case.label, what, k,
         table.concat(got.size, 'x'), table.concat(want.size, 'x'))
      return
   end
   for i = 1, want.n do
      local error = math.abs(got[i] - want[i])
      if error ~= error or error > tolerance * factor * (1 + math.abs(want[i])) then
         complaints[#complaints + 1] = ('%s(%s) %s of input %d, element %d: got %.9g, need %.9g'):format(case.row.name, case.label, what, k, i,
            got[i], want[i])
         return
      end
   end
end

-- Not smooth where elements are equal, as those of an expanded tensor are.
local ties = { amax = true, amin = true }

local function cases(row)
   local list = {}
   for _, case in ipairs(ops.cases(row)) do
      local small = true
      for k = 1, case.n do small = small and (not case.inputs[k] or case.arrays[k].n <= 200) end
      if case.dtype == 'Double' and small and case.layout ~= 'empty' and not (case.layout == 'expanded' and ties[row.name]) then list[#list + 1] = case end
   end
   return list
end

local function firstOrder(case, complaints)
   local grads, index = tapeGradients(case)
   for i, k in ipairs(index) do
      local want = differences(case, k, function() return weighted(ops.eager(case), case.weights) end)
      local got = grads[i] and layout.array(grads[i]) or nd.new(want.size, 0)
      complain(case, 'gradient', k, got, want, complaints, 1)
   end
end

-- h(inputs) = sum of the first gradients with fixed weights; its gradient by the tape against its differences.
local function secondOrder(case, complaints)
   local function outer(createGraph)
      local grads, index, leaves = tapeGradients(case, createGraph)
      case.outer = case.outer or cotangents(grads)
      return grads, index, leaves
   end
   local grads, index, leaves = outer(true)
   local ys, dys = {}, {}
   for i in ipairs(index) do
      if grads[i] and grads[i]:requiresGrad() then ys[#ys + 1], dys[#dys + 1] = grads[i], case.outer[i] end
   end
   local second = #ys > 0 and torch.autograd.grad(ys, leaves, dys, { allowUnused = true }) or {}
   for i, k in ipairs(index) do
      local want = differences(case, k, function() return weighted(outer(false), case.outer) end)
      complain(case, 'second gradient', k, second[i] and layout.array(second[i]) or nd.new(want.size, 0), want, complaints, 5)
   end
end

local function judge(complaints)
   assert.equal('', table.concat({ unpack(complaints, 1, 6) }, '\n'))
end

describe('gradient of', function()
   for _, row in ipairs(ops.rows) do
      local differentiable = row.grad ~= false and row.kind ~= 'RAND' and not row.random and row.types ~= 'int' and row.name ~= 'mode'
      if differentiable and ops.hasReference(row) then
         it(row.name, function()
            local complaints = {}
            for _, case in ipairs(cases(row)) do firstOrder(case, complaints) end
            judge(complaints)
         end)
         if row.smooth then
            it(row.name .. ', second order', function()
               local complaints = {}
               for i, case in ipairs(cases(row)) do
                  if i <= 3 then secondOrder(case, complaints) end
               end
               judge(complaints)
            end)
         end
      end
   end
end)
