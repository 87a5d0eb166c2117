-- The benchmark workloads at tiny sizes: a whole training step is one graph without breaks, and trains as eager does.
local folder = 'examples/bench/workloads/'

local tiny = {
   resnet50 = {batch = 2, size = 32, base = 4, classes = 5, blocks = {1, 1}},
   gptmini = {tokens = 11, context = 6, width = 8, heads = 2, layers = 1, batch = 2},
   gpt2 = {tokens = 11, context = 8, width = 8, heads = 2, layers = 1, batch = 2, length = 5},
   bert = {tokens = 11, context = 8, width = 8, heads = 2, layers = 1, batch = 2, length = 5},
   vit = {batch = 2, size = 8, width = 8, heads = 2, layers = 1, patch = 4, classes = 5},
   charlstm = {tokens = 7, size = 5, hidden = 6, steps = 4, batch = 3},
   unet = {batch = 2, size = 8, planes = 8, times = 16},
   dlrm = {tables = 3, rows = 6, batch = 4, d = 4, wide = 8, middle = 6},
}

local function make(name)
   torch.manualSeed(6)
   return assert(loadfile(folder .. name .. '.lua'))()(tiny[name])
end

-- Losses of a step that makes the buffers, then of two by compile(step), from one seed; then the parameters.
local function train(work, compile)
   local losses, step = {}, work.step
   torch.manualSeed(7)
   for i = 1, 3 do
      local _, fs = step()
      losses[i] = fs[1]
      if i == 1 then step = compile(step) end
   end
   return losses, (work.net:getParameters())
end

-- fullgraph raises where a step would not be one graph.
local function compiled(step) return torch.compile(step, {fullgraph = true}) end
local function eager(step) return step end

describe('workloads', function()
   local default
   setup(function()
      default = torch.getdefaulttensortype()
      torch.setdefaulttensortype 'torch.FloatTensor'
   end)
   teardown(function() torch.setdefaulttensortype(default) end)

   for name in pairs(tiny) do
      it(name, function()
         local losses, params = train(make(name), eager)
         local got, same = train(make(name), compiled)
         for i = 1, 3 do
            assert.is_true(losses[i] > 0 and losses[i] < 1e3)
            assert.near(got[i], losses[i], 1e-4)
         end
         assert.is_true(losses[3] ~= losses[1])
         assert.near(same, params, 1e-3)
      end)
   end
end)
