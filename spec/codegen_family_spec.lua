-- Families of plans: one graph at several sizes, one text of its kernels.

local C = require 'relume.core'

-- A graph of f at the sizes of x.
local function graph(f, ...)
   local g = C.graphBegin()
   local fakes = {}
   for i = 1, select('#', ...) do fakes[i] = g:input((select(i, ...))) end
   local ok, e = pcall(function()
      for _, y in ipairs {f(unpack(fakes))} do g:output(y) end
   end)
   g:stop()
   assert(ok, e)
   return g
end

local function check(f, family, ...)
   local plan = graph(f, ...):compile {family = family}
   local want, got = {f(...)}, {plan:call(...)}
   for i, y in ipairs(want) do assert.is_true((y - got[i]):abs():max() <= 1e-12 * math.max(1, y:abs():max())) end
   return plan
end

local bodies = {
   pointwise = function(x) return torch.add(x, 1):mul(3):tanh() end,
   softmax = function(x) return torch.exp(x - x:max(2):expandAs(x)), x:sum(1), x:sum(2) end,
   windows = function(x) return x:narrow(1, 2, x:size(1) - 1) - x:narrow(1, 1, x:size(1) - 1) end,
   transposed = function(x) return x:t():clone():mul(2), x:t() * x end,
   joined = function(x) return torch.cat(x, x * 2, 1):add(1) end,
   constants = function(x) return torch.mul(x, 1 / x:size(1)):add(x:size(1)) end,
}

describe('a family of plans', function()
   for name, f in pairs(bodies) do
      it(name .. ': has one text for all sizes that follow a probe', function()
         local family = C.planFamily()
         family:probe(graph(f, torch.randn(13, 6)))
         assert.equal(0, family:texts())
         for _, n in ipairs {5, 7, 64, 12, 300} do check(f, family, torch.randn(n, 6)) end
         assert.equal(1, family:texts())
      end)

      it(name .. ': learns from its first plans without one', function()
         local family = C.planFamily()
         for _, n in ipairs {5, 7, 64, 12, 300} do check(f, family, torch.randn(n, 6)) end
         assert.is_true(family:texts() <= 2)
      end)
   end

   it('keeps numbers that do not follow the sizes as literals', function()
      local family, f = C.planFamily(), bodies.pointwise
      family:probe(graph(f, torch.randn(13, 6)))
      local source = check(f, family, torch.randn(5, 6)):source()
      assert.is_truthy(source:find('const int64_t q0 = q[0];', 1, true))
      assert.is_truthy(source:find('3.0', 1, true))
      assert.is_nil(check(f, nil, torch.randn(5, 6)):source():find('q[0]', 1, true))
   end)

   it('gives another graph a text of its own', function()
      local family = C.planFamily()
      check(bodies.pointwise, family, torch.randn(5, 6))
      check(bodies.softmax, family, torch.randn(5, 6))
      check(bodies.pointwise, family, torch.randn(6, 6))
      check(bodies.softmax, family, torch.randn(6, 6))
      assert.equal(4, family:texts())
      check(bodies.pointwise, family, torch.randn(8, 6))
      check(bodies.softmax, family, torch.randn(8, 6))
      assert.equal(4, family:texts())
   end)

   it('probes with the graph of a plan, too', function()
      local family, f = C.planFamily(), bodies.softmax
      family:probe(check(f, nil, torch.randn(9, 6)))
      for _, n in ipairs {5, 7, 64} do check(f, family, torch.randn(n, 6)) end
      assert.equal(1, family:texts())
   end)

   it('g:input takes sizes in place of those of the tensor', function()
      local x, other = torch.randn(4, 6), torch.randn(2)
      local g = C.graphBegin()
      local fake = g:input(x, {9, 2})
      assert.same({9, 2}, fake:size():totable())
      assert.same({2, 1}, fake:stride():totable())
      assert.has_error(function() g:input(x, {9, 2}) end)
      assert.has_error(function() g:input(other, {9, 2}) end)
      g:stop()
   end)
end)
