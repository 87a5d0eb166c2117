-- mlp: 784-1024-1024-10, ReLU, cross-entropy, batch 128; SGD 0.01 with momentum 0.9.
return function()
   local net = nn.Sequential()
      :add(nn.Linear(784, 1024)):add(nn.ReLU())
      :add(nn.Linear(1024, 1024)):add(nn.ReLU())
      :add(nn.Linear(1024, 10))
   local criterion = nn.CrossEntropyCriterion()
   net:get(1).gradInput = nil -- nobody asks for the gradient of the data
   local params, grads = net:getParameters()
   local state = { learningRate = 0.01, momentum = 0.9, dampening = 0 }
   local x, y = torch.randn(128, 784), torch.LongTensor(128):random(10)

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
