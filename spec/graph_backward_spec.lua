-- Backward and partition: gradients equal the tape's; forward and backward together equal the joint graph, saving little.
local C = require 'relume.core'
local graph = require 'support.graph'

local function lcg(seed, ...)
   local t = torch.DoubleTensor(...)
   local p = t:data()
   for i = 0, t:nElement() - 1 do
      seed = (seed * 1103515245 + 12345) % 2147483648
      p[i] = seed / 2147483648 - 0.5
   end
   return t
end

local function eagerGrads(f, xs, dy)
   local args = {}
   for i, x in ipairs(xs) do args[i] = x:clone():requiresGrad(true) end
   local y = f(unpack(args))
   local out = { y:detach() }
   for _, d in ipairs(torch.autograd.grad({ y }, args, { dy }, { allowUnused = true })) do out[#out + 1] = d end
   return out
end

local cases = {
   ['a layer'] = { function(x, w, b) return torch.tanh(C.op.linear(x, w, b)) end, { { 5, 3 }, { 4, 3 }, { 4 } }, { 5, 4 } },
   ['a broadcast product'] = { function(x, w) return C.op.mul(x, w) end, { { 5, 3 }, { 1, 3 } }, { 5, 3 } },
   softmax = { function(x) return C.op.softmax(torch.mul(x, 2), 1) end, { { 4, 6 } }, { 4, 6 } },
   ['views and reductions'] = { function(x) return C.op.sum(torch.exp(x:t():narrow(1, 2, 3)), { 1 }, false) end, { { 4, 6 } }, { 3 } },
   ['a window written'] = { function(x, w)
      local y = torch.mul(x, 1)
      y:select(2, 2):copy(torch.cmul(w, w))
      return torch.cmul(y, y)
   end, { { 4, 3 }, { 4 } }, { 4, 3 } },
}

local function setUp(case)
   local xs = {}
   for i, size in ipairs(case[2]) do xs[i] = lcg(i, unpack(size)) end
   local g = graph.record(case[1], xs):passes 'functionalize'
   local _, ends = g:walk()
   return g, xs, lcg(99, unpack(case[3])), ends.inputs
end

describe('backward', function()
   for name, case in pairs(cases) do
      it('gives the gradients of ' .. name, function()
         local g, xs, dy, inputs = setUp(case)
         local joint = g:backward(inputs)
         joint:verify()
         local want = eagerGrads(case[1], xs, dy)
         local args = { unpack(xs) }
         args[#args + 1] = dy
         assert.near({ joint:run(args, {}) }, want, 1e-10)
         assert.near({ joint:passes('decompose'):passes('fold'):run(args, {}) }, want, 1e-10)
      end)

      it('splits ' .. name, function()
         local g, xs, dy, inputs = setUp(case)
         local joint = g:backward(inputs):passes('decompose'):passes('fold')
         local fwd, bwd = joint:partition(1, 1)
         fwd:verify()
         bwd:verify()
         local args = { unpack(xs) }
         args[#args + 1] = dy
         local want = { joint:run(args, {}) }
         local mid = { fwd:run(xs, {}) }
         assert.near(mid[1], want[1], 1e-12)
         local back = { unpack(mid, 2) }
         back[#back + 1] = dy
         assert.near({ bwd:run(back, {}) }, { unpack(want, 2) }, 1e-12)
      end)
   end

   it('gives zeros where nothing reaches', function()
      local g = graph.record(function(x) return torch.exp(x) end, { lcg(1, 3), lcg(2, 4) }):passes 'functionalize'
      local joint = g:backward { 0, 1 }
      local _, _, dz = joint:run({ lcg(1, 3), lcg(2, 4), lcg(3, 3) }, {})
      assert.near(dz, torch.DoubleTensor(4):zero())
   end)

   it('saves the small values', function()
      -- exp(tanh(x)): the backward needs x, or one intermediate; never all of them
      local g = graph.record(function(x) return torch.sigmoid(torch.exp(torch.tanh(torch.mul(x, 3)))) end, { lcg(1, 64) }):passes 'functionalize'
      local fwd = g:backward({ 0 }):passes('decompose'):passes('fold'):partition(1, 1)
      local _, ends = fwd:walk()
      assert.equal(2, #ends.outputs)
   end)
end)
