-- The benchmark workloads at tiny sizes: a whole training step is one graph without breaks, and trains as eager does.
local folder = 'examples/bench/workloads/'

local tiny = dofile 'examples/bench/tiny.lua'

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
      losses[i] = fs and fs[1] or work.net:parameters()[1]:norm()
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
