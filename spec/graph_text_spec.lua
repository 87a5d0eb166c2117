-- Graph text: prints and parses back to an equal graph; errors name line and column.
local C = require 'relume.core'
local graph = require 'support.graph'

local function roundTrip(g)
   local text = g:print()
   local back = C.graphParse(text)
   assert.equal(text, back:print())
   assert.equal(g:count(), back:count())
   assert.is_true(back:verify())
   return text, back
end

describe('graph text', function()
   it('keeps inputs, numbers, constants, attributes, views, writes, outputs', function()
      local x = torch.FloatTensor(4, 6):fill(1)
      local g = graph.record(function(a, lr)
         local y = torch.cmul(a:t(), a:t())
         a:narrow(1, 2, 2):add(lr, a:narrow(1, 1, 2))
         return y:add(0.5), torch.sum(y, 1)
      end, { x }, { 0.1 })
      local text = roundTrip(g)
      assert.truthy(text:find 'input 0 : Float%[4,6%] of 24')
      assert.truthy(text:find 'number 0 {hint=0.1}')
      assert.truthy(text:find 'write%(')
      assert.truthy(text:find '@0%+6')
   end)

   it('keeps storage sizes and strides of windows that share memory', function()
      local flat = torch.DoubleTensor(20)
      local w = flat:narrow(1, 5, 12):view(3, 4):t()
      local g = graph.record(function(a, b) return a + 1, b + 1 end, { flat, w })
      local text = roundTrip(g)
      assert.truthy(text:find 'input 1 : Double%[4,3%] @0%+4%(1,4%) of 20')
   end)

   it('keeps constants with their elements', function()
      local c = torch.DoubleTensor { 1, -2.5, 1e-3 }
      local k = torch.LongTensor { 1, 2 }
      local g = graph.record(function(a)
         return torch.cmul(a, c), C.op.index_select(a, k, 0)
      end, { torch.DoubleTensor(3):fill(2) })
      local text, back = roundTrip(g)
      assert.truthy(text:find '= {1, %-2.5, 0.001}')
      assert.near({ back:run({ torch.DoubleTensor { 1, 2, 4 } }, {}) }, { torch.DoubleTensor { 1, -5, 0.004 }, torch.DoubleTensor { 2, 4 } })
   end)

   it('keeps several outputs, counters and source positions', function()
      local x = torch.DoubleTensor(3, 4):fill(1)
      local g = C.graphBegin()
      local a = g:input(x)
      g:loc 'net.lua:12'
      local v, i = C.op.sort(a, 1)
      local r = C.op.rand({ 3, 4 }, 'Double')
      local r2 = C.op.rand({ 2 }, 'Double')
      g:output(v)
      g:output(i)
      g:output(r)
      g:output(r2)
      g:stop()
      local text = roundTrip(g)
      assert.truthy(text:find '# net.lua:12')
      assert.truthy(text:find 'proj%(%%1%) 1')
      assert.truthy(text:find 'graph rng=7 {')
      assert.truthy(text:find 'rng=6')
   end)

   it('keeps every stage of the passes', function()
      local x = torch.FloatTensor(4, 6):fill(1)
      local g = graph.record(function(a)
         a:mul(2)
         return C.op.softmax(a, 1), C.op.cat({ a, a }, 0)
      end, { x })
      for _, stage in ipairs(graph.stages(g)) do roundTrip(stage[2]) end
   end)

   local bad = {
      { 'graph {\n  %0 = input 0 : Float[2] of 2\n  %1 = frobnicate(%0) : Float[2]\n}', 'line 3, column 18' },
      { 'graph {\n  %0 = input 0 : Flot[2] of 2\n}', 'line 2, column 18: unknown dtype' },
      { 'graph {\n  %1 = input 0 : Float[2] of 2\n}', 'count up' },
      { 'graph {\n  %0 = input 0 : Float[2] of 2\n  %1 = neg(%4) : Float[2]\n}', 'no such node' },
      { 'graph {\n  output %0\n}', 'no such node' },
      { 'graph {\n  %0 = input 0 : Float[2,] of 2\n}', 'expected an integer' },
      { 'graph {\n', "expected a node" },
      { 'graph {\n} x', 'after the closing' },
      { 'graph {\n  %0 = input 0 : Float[2] of 2\n  %1 = sum(%0) {dimz=[0]} : Float[1]\n}', 'no such attribute' },
   }
   for _, case in ipairs(bad) do
      it('rejects ' .. case[1]:gsub('%s+', ' '), function()
         local ok, err = pcall(C.graphParse, case[1])
         assert.is_false(ok)
         assert.truthy(tostring(err):find(case[2], 1, true), tostring(err))
      end)
   end
end)
