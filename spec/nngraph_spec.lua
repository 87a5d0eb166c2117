-- nngraph: graphs built by calling modules, gModule against the same network from containers, the original's file, text.
require 'nngraph'
local check = require 'support.module_check'

describe('nngraph', function()
   before_each(function() torch.manualSeed(41) end)

   it('a chain equals nn.Sequential', function()
      local a, b = nn.Linear(4, 5), nn.Linear(5, 3)
      local input = nn.Identity()()
      local g = nn.gModule({input}, {nn.Tanh()(b(nn.Sigmoid()(a(input))))})
      local s = nn.Sequential():add(a:clone()):add(nn.Sigmoid()):add(b:clone()):add(nn.Tanh())
      local x, dy = torch.randn(2, 4), torch.randn(2, 3)
      assert.near(g:forward(x), s:forward(x), 1e-12)
      g:zeroGradParameters()
      s:zeroGradParameters()
      assert.near(g:backward(x, dy), s:backward(x, dy), 1e-12)
      local _, gg = g:parameters()
      local _, sg = s:parameters()
      for i = 1, #sg do assert.near(gg[i], sg[i], 1e-12) end
   end)

   it('values used twice, tables in and out, splits', function()
      local a, b = nn.Identity()(), nn.Identity()()
      local h = nn.Linear(4, 6)(nn.CMulTable()({a, b}))
      local left, right = nn.ConcatTable():add(nn.Narrow(2, 1, 3)):add(nn.Narrow(2, 4, 3))(h):split(2)
      local y = nn.CAddTable()({nn.Tanh()(left), nn.CMulTable()({left, right})})
      local g = nn.gModule({a, b}, {y, nn.Sigmoid()(right)})
      local out = check.module(g, {torch.randn(2, 4), torch.randn(2, 4)}, {noTape = true})
      assert.equal(2, #out)
   end)

   it('an output that nothing depends on gets zeros', function()
      local input = nn.Identity()()
      local left = nn.SplitTable(2)(input):split(2)
      local g = nn.gModule({input}, {nn.Square()(left)})
      local x = torch.Tensor {{1, 2}, {3, 4}}
      assert.near(g:forward(x), torch.Tensor {1, 9}, 0)
      assert.near(g:backward(x, torch.ones(2)), torch.Tensor {{2, 0}, {6, 0}}, 0)
   end)

   it('operators build the same graph', function()
      local input = - nn.Identity()
      local g = nn.gModule({input}, {input - nn.MulConstant(3) - nn.AddConstant(1)})
      assert.near(g:forward(torch.Tensor {1, 2}), torch.Tensor {4, 7}, 0)
   end)

   it('calling a module on a tensor still computes', function()
      assert.near(nn.MulConstant(3)(torch.Tensor {1, 2}), torch.Tensor {3, 6}, 0)
   end)

   it('nest gives tables their shape', function()
      local a, b = nn.Identity()(), nn.Identity()()
      local g = nn.gModule({a, b}, {nngraph.nest {a, {b}}})
      local y = g:forward {torch.Tensor {1}, torch.Tensor {2}}
      assert.equal(1, y[1][1])
      assert.equal(2, y[2][1][1])
      local dx = g:backward({torch.Tensor {1}, torch.Tensor {2}}, {torch.Tensor {5}, {torch.Tensor {6}}})
      assert.equal(5, dx[1][1])
      assert.equal(6, dx[2][1])
   end)

   it('names, annotations and Graphviz text', function()
      local first = nn.Identity()()
      local second = nn.Linear(2, 3)(first):annotate {name = 'fc', graphAttributes = {color = 'red'}}
      nngraph.annotateNodes()
      assert.equal('first', first.data.annotations.name)
      assert.equal('fc', second.data.annotations.name)
      assert.truthy(second.data.annotations._debugLabel:find 'nngraph_spec.lua%]:%d+_second$')
      local g = nn.gModule({first}, {second})
      local text = graph.dot(g.fg, 'net')
      assert.truthy(text:find('label="net"', 1, true))
      assert.truthy(text:find('fc\\lnn.Linear(2 -> 3)", color="red"', 1, true))
      assert.equal(3, select(2, text:gsub('n%d+ %-> n%d+', '')))
   end)

   it('errors name what is wrong', function()
      local a, b = nn.Identity()(), nn.Identity()()
      assert.error_matches(function() nn.gModule({a, b}, {nn.Tanh()(a)}) end, 'no output uses')
      a, b = nn.Identity()(), nn.Identity()()
      assert.error_matches(function() nn.gModule({a}, {nn.CAddTable()({a, b})}) end, 'got no input')
      assert.error_matches(function() nn.CAddTable()({a, torch.Tensor(2)}) end, 'need a node')
      assert.error_matches(function() nn.gModule({}, {a}) end, 'need at least one node')
      local c, d = nn.Identity()(), nn.Identity()()
      local g = nn.gModule({c, d}, {nn.CAddTable()({c, d})})
      assert.error_matches(function() g:forward(torch.Tensor(2)) end, 'need a table of 2')
   end)

   it('the model that the original wrote', function()
      local folder = 'spec/data/t7/'
      local m, want = torch.load(folder .. 'model_gmodule.t7'), torch.load(folder .. 'model_gmodule_expect.t7')
      m:training()
      assert.near(m:forward(want.input), want.output, 1e-5)
      m:zeroGradParameters()
      assert.near(m:backward(want.input, want.gradOutput), want.gradInput, 1e-5)
      local params, grads = m:getParameters()
      assert.near(grads, want.gradParameters, 1e-5)
      assert.near(params, want.parameters, 1e-6)
      local copy = m:clone()
      assert.near(copy:forward(want.input), want.output, 1e-5)
      assert.not_equal(torch.pointer(copy.modules[2].weight:storage()), torch.pointer(m.modules[2].weight:storage()))
   end)

   it('replace reaches the graph', function()
      local input = nn.Identity()()
      local g = nn.gModule({input}, {nn.Tanh()(nn.MulConstant(2)(input))})
      g:replace(function(m) return torch.type(m) == 'nn.Tanh' and nn.Square() or m end)
      assert.near(g:forward(torch.Tensor {1, 3}), torch.Tensor {4, 36}, 0)
   end)

   it('compiles as one graph', function()
      local function make()
         torch.manualSeed(5)
         local a, b = nn.Identity()(), nn.Identity()()
         local h = nn.Linear(4, 4)(a)
         local net = nn.gModule({a, b}, {nn.CAddTable()({nn.Tanh()(h), nn.CMulTable()({h, b})})}):float()
         local _, grads = net:getParameters()
         return function(x, dy)
            grads:zero()
            local y = net:forward(x)
            local dx = net:backward(x, dy)
            return y, dx[1], dx[2], grads
         end
      end
      local eager, step = make(), make()
      local x, dy = {torch.randn(3, 4):float(), torch.randn(3, 4):float()}, torch.randn(3, 4):float()
      local compiled = torch.compile(step, {fullgraph = true})
      for _ = 1, 2 do
         local want, got = {eager(x, dy)}, {compiled(x, dy)}
         for i = 1, 4 do assert.near(got[i], want[i], 1e-5) end
      end
   end)
end)
