-- vae: 784-400-20-400-784, reparameterised (Kingma and Welling 2014), binary cross-entropy plus KL, batch 128; AdamW 0.001.
return function(o)
   o = o or {}
   local inputs, width, batch = o.inputs or 784, o.width or 400, o.batch or 128
   local encoder = nn.Sequential()
      :add(nn.Linear(inputs, width)):add(nn.ReLU())
      :add(nn.ConcatTable():add(nn.Linear(width, 20)):add(nn.Linear(width, 20))) -- mean and log variance of z
   local decoder = nn.Sequential()
      :add(nn.Linear(20, width)):add(nn.ReLU())
      :add(nn.Linear(width, inputs))
   local net = nn.Sequential():add(encoder):add(decoder)
   encoder:get(1).gradInput = nil -- nobody asks for the gradient of the data
   local params, grads = net:getParameters()
   local state = { learningRate = 1e-3 }
   local x = torch.rand(batch, inputs)

   -- Cross-entropy of logits r with targets t, summed: softplus(r) - r t.
   local function crossEntropy(r, t)
      return (torch.cmax(r, 0) - torch.cmul(r, t) + torch.log1p(torch.exp(-torch.abs(r)))):sum()
   end
   local function forward()
      local mu, lv = unpack(encoder:forward(x))
      local noise, deviation = torch.randn(batch, 20), torch.exp(lv * 0.5)
      local z = mu + torch.cmul(noise, deviation)
      local r = decoder:forward(z)
      local kl = (torch.pow(mu, 2) + torch.exp(lv) - lv - 1):sum() * 0.5
      return crossEntropy(r, x) + kl, r, mu, lv, noise, deviation, z
   end
   local function feval()
      grads:zero()
      local loss, r, mu, lv, noise, deviation, z = forward()
      local dz = decoder:backward(z, torch.sigmoid(r) - x)
      local dlv = torch.cmul(torch.cmul(dz, noise), deviation) * 0.5 + (torch.exp(lv) - 1) * 0.5
      encoder:backward(x, { dz + mu, dlv })
      return loss, grads
   end
   return {
      net = net,
      step = function() optim.adamw(feval, params, state) end,
      infer = function() return (forward()) end,
   }
end
