-- fuse: layer norm, GELU, dropout, residual, twice, on 512 x 4096 numbers; the loss is the mean square. Bound by memory. SGD 0.01, momentum 0.9.
return function(o)
   local function residual(branch)
      return nn.Sequential()
         :add(nn.ConcatTable():add(nn.Identity()):add(branch))
         :add(nn.CAddTable())
   end
   local function block()
      return residual(nn.Sequential():add(nn.LayerNorm(4096)):add(nn.GELU()):add(nn.Dropout(0.1)))
   end
   local net = nn.Sequential():add(block()):add(block())
   local params, grads = net:getParameters()
   local state = { learningRate = 0.01, momentum = 0.9, dampening = 0 }
   local x = torch.randn(o and o.rows or 512, 4096)

   local function feval()
      grads:zero()
      local out = net:forward(x)
      local loss = torch.pow(out, 2):mean()
      net:backward(x, out * (2 / out:nElement()))
      return loss, grads
   end
   return {
      net = net,
      step = function() optim.sgd(feval, params, state) end,
      infer = function() return torch.pow(net:forward(x), 2):mean() end,
   }
end
