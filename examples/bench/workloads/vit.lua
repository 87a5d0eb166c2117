-- vit: ViT-S/16 on 3x224x224 (Dosovitskiy et al. 2020): patches of 16x16, 12 layers, 6 heads, 384 wide, 1000 classes, batch 4; AdamW 0.0003.
return function(o)
   o = o or {}
   local width, heads, layers, patch = o.width or 384, o.heads or 6, o.layers or 12, o.patch or 16
   local batch, size, classes = o.batch or 4, o.size or 224, o.classes or 1000
   local places = (size / patch) ^ 2
   local net = nn.Sequential()
      :add(nn.SpatialConvolution(3, width, patch, patch, patch, patch))
      :add(nn.View(width, places):setNumInputDims(3)):add(nn.Transpose({ 2, 3 }))
      :add(nn.ClassToken(width))
      :add(nn.PositionalEmbedding(places + 1, width):reset(0.02))
   for _ = 1, layers do net:add(nn.TransformerBlock(width, heads, false)) end
   net:add(nn.Select(2, 1)):add(nn.LayerNorm(width)):add(nn.Linear(width, classes))
   local criterion = nn.CrossEntropyCriterion()
   net:get(1).gradInput = nil -- nobody asks for the gradient of the data
   local params, grads = net:getParameters()
   local state = { learningRate = 3e-4 }
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
      step = function() return optim.adamw(feval, params, state) end,
      infer = function() return criterion:forward(net:forward(x), y) end,
   }
end
