-- resnet50: the ImageNet form on 3x224x224 (He et al. 2016), 1000 classes, batch 4; SGD 0.1, momentum 0.9, weight decay 0.0001.
local function conv(from, to, k, stride)
   local pad = (k - 1) / 2
   return nn.SpatialConvolution(from, to, k, k, stride, stride, pad, pad):noBias()
end

local function norm(planes)
   local m = nn.SpatialBatchNormalization(planes)
   m.weight:fill(1)
   return m
end

local function bottleneck(from, width, stride)
   local to = 4 * width
   local branch = nn.Sequential()
      :add(conv(from, width, 1, 1)):add(norm(width)):add(nn.ReLU())
      :add(conv(width, width, 3, stride)):add(norm(width)):add(nn.ReLU())
      :add(conv(width, to, 1, 1)):add(norm(to))
   local shortcut = nn.Identity()
   if stride ~= 1 or from ~= to then shortcut = nn.Sequential():add(conv(from, to, 1, stride)):add(norm(to)) end
   return nn.Sequential():add(nn.ConcatTable():add(branch):add(shortcut)):add(nn.CAddTable()):add(nn.ReLU())
end

return function(o)
   o = o or {}
   local batch, size, base, classes = o.batch or 4, o.size or 224, o.base or 64, o.classes or 1000
   local net = nn.Sequential():add(conv(3, base, 7, 2)):add(norm(base)):add(nn.ReLU()):add(nn.SpatialMaxPooling(3, 3, 2, 2, 1, 1))
   local from = base
   for stage, blocks in ipairs(o.blocks or { 3, 4, 6, 3 }) do
      local width = base * 2 ^ (stage - 1)
      for i = 1, blocks do
         net:add(bottleneck(from, width, i == 1 and stage > 1 and 2 or 1))
         from = 4 * width
      end
   end
   net:add(nn.SpatialAdaptiveAveragePooling(1, 1)):add(nn.View(from)):add(nn.Linear(from, classes))
   local criterion = nn.CrossEntropyCriterion()
   net:get(1).gradInput = nil -- nobody asks for the gradient of the data
   local params, grads = net:getParameters()
   local state = { learningRate = 0.1, momentum = 0.9, dampening = 0, weightDecay = 1e-4 }
   local x, y = torch.randn(batch, 3, size, size), torch.LongTensor(batch):random(classes)

   local function feval()
      grads:zero()
      local out = net:forward(x)
      local loss = criterion:forward(out, y)
      net:backward(x, criterion:backward(out, y))
      return loss, grads
   end
   return {
      net = net,
      step = function() return optim.sgd(feval, params, state) end,
      infer = function() return criterion:forward(net:forward(x), y) end,
   }
end
