-- The README's first program: a small network learns to multiply; one line makes the whole training step one compiled plan.
dofile((arg[0]:match '^(.*)examples/' or '') .. 'examples/paths.lua')
-- README:
require 'torch'; require 'nn'; require 'optim'

torch.manualSeed(1)
local net = nn.Sequential():add(nn.Linear(2, 64)):add(nn.Tanh()):add(nn.Linear(64, 1))
local mse, params, grads = nn.MSECriterion(), net:getParameters()
local x = torch.rand(256, 2) * 2 - 1
local y = torch.cmul(x:narrow(2, 1, 1), x:narrow(2, 2, 1)) -- learn to multiply

local function loss()
   grads:zero()
   local l = mse:forward(net:forward(x), y)
   net:backward(x, mse:backward(net.output, y))
   return l, grads
end
local state = { learningRate = 0.01 }
local step = torch.compile(function() return select(2, optim.adam(loss, params, state))[1] end)
for i = 1, 1000 do
   local l = step()
   if i % 250 == 0 then print(('step %4d  loss %.6f'):format(i, l)) end
end
