-- dqn: Atari Q-network on 4x84x84 frames, Huber loss of the taken action's value (Mnih et al. 2015), batch 32; AdamW 0.0001.
return function(o)
   local batch, wide = o and o.batch or 32, o and o.wide or 512
   local net = nn.Sequential()
      :add(nn.SpatialConvolution(4, 32, 8, 8, 4, 4)):add(nn.ReLU())
      :add(nn.SpatialConvolution(32, 64, 4, 4, 2, 2)):add(nn.ReLU())
      :add(nn.SpatialConvolution(64, 64, 3, 3, 1, 1)):add(nn.ReLU())
      :add(nn.View(3136))
      :add(nn.Linear(3136, wide)):add(nn.ReLU())
      :add(nn.Linear(wide, 6))
   local criterion = nn.SmoothL1Criterion()
   net:get(1).gradInput = nil -- nobody asks for the gradient of the data
   local params, grads = net:getParameters()
   local state = { learningRate = 1e-4 }
   local x, action, target = torch.rand(batch, 4, 84, 84), torch.LongTensor(batch, 1):random(6), torch.randn(batch, 1)

   local function feval()
      grads:zero()
      local values = net:forward(x)
      local taken = values:gather(2, action)
      local loss = criterion:forward(taken, target)
      local dvalues = torch.zeros(batch, 6):scatter(2, action, criterion:backward(taken, target))
      net:backward(x, dvalues)
      return loss, grads
   end
   return {
      net = net,
      step = function() optim.adamw(feval, params, state) end,
      infer = function() return criterion:forward(net:forward(x):gather(2, action), target) end,
   }
end
