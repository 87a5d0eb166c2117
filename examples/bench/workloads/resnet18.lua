-- resnet18: the CIFAR form on 3x32x32 (He et al. 2016), 10 classes, batch 16; SGD 0.1, momentum 0.9, weight decay 0.0005.
local function conv(from, to, k, stride)
   local pad = (k - 1) / 2
   return nn.SpatialConvolution(from, to, k, k, stride, stride, pad, pad):noBias()
end

local function norm(planes)
   local m = nn.SpatialBatchNormalization(planes)
   m.weight:fill(1)
   return m
end

local function block(from, to, stride)
   local branch = nn.Sequential()
      :add(conv(from, to, 3, stride)):add(norm(to)):add(nn.ReLU())
      :add(conv(to, to, 3, 1)):add(norm(to))
   local shortcut = nn.Identity()
   if stride ~= 1 or from ~= to then
      shortcut = nn.Sequential():add(conv(from, to, 1, stride)):add(norm(to))
   end
   return nn.Sequential():add(nn.ConcatTable():add(branch):add(shortcut)):add(nn.CAddTable()):add(nn.ReLU())
end

return function(o)
   local batch = o and o.batch or 16
   local net = nn.Sequential():add(conv(3, 64, 3, 1)):add(norm(64)):add(nn.ReLU())
   local from = 64
   for stage, width in ipairs { 64, 128, 256, 512 } do
      net:add(block(from, width, stage == 1 and 1 or 2)):add(block(width, width, 1))
      from = width
   end
   net:add(nn.SpatialAdaptiveAveragePooling(1, 1)):add(nn.View(512)):add(nn.Linear(512, 10))
   local criterion = nn.CrossEntropyCriterion()
   net:get(1).gradInput = nil -- nobody asks for the gradient of the data
   local params, grads = net:getParameters()
   local state = { learningRate = 0.1, momentum = 0.9, dampening = 0, weightDecay = 5e-4 }
   local x, y = torch.randn(batch, 3, 32, 32), torch.LongTensor(batch):random(10)

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
