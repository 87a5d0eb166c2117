-- lenet: conv 1->32 5x5, pool, conv 32->64 5x5, pool, 1024-256-10, ReLU, cross-entropy, batch 128; SGD 0.01 with momentum 0.9.
return function()
   local net = nn.Sequential()
      :add(nn.SpatialConvolution(1, 32, 5, 5)):add(nn.ReLU()):add(nn.SpatialMaxPooling(2, 2))
      :add(nn.SpatialConvolution(32, 64, 5, 5)):add(nn.ReLU()):add(nn.SpatialMaxPooling(2, 2))
      :add(nn.View(1024))
      :add(nn.Linear(1024, 256)):add(nn.ReLU())
      :add(nn.Linear(256, 10))
   local criterion = nn.CrossEntropyCriterion()
   net:get(1).gradInput = nil -- nobody asks for the gradient of the data
   local params, grads = net:getParameters()
   local state = { learningRate = 0.01, momentum = 0.9, dampening = 0 }
   local x, y = torch.randn(128, 1, 28, 28), torch.LongTensor(128):random(10)

   local function feval()
      grads:zero()
      local out = net:forward(x)
      local loss = criterion:forward(out, y)
      net:backward(x, criterion:backward(out, y))
      return loss, grads
   end
   return {
      net = net,
      step = function() optim.sgd(feval, params, state) end,
      infer = function() return criterion:forward(net:forward(x), y) end,
   }
end
