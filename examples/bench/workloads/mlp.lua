-- mlp: 784-1024-1024-10, ReLU, cross-entropy, batch 128; SGD 0.01 with momentum 0.9.
return function(o)
   o = o or {}
   local inputs, width, batch = o.inputs or 784, o.width or 1024, o.batch or 128
   local net = nn.Sequential()
      :add(nn.Linear(inputs, width)):add(nn.ReLU())
      :add(nn.Linear(width, width)):add(nn.ReLU())
      :add(nn.Linear(width, 10))
   local criterion = nn.CrossEntropyCriterion()
   net:get(1).gradInput = nil -- nobody asks for the gradient of the data
   local params, grads = net:getParameters()
   local state = { learningRate = 0.01, momentum = 0.9, dampening = 0 }
   local x, y = torch.randn(batch, inputs), torch.LongTensor(batch):random(10)

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
