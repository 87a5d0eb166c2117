-- dlrm: a recommendation model (Naumov et al. 2019): 26 embeddings of 10000 x 64, 13 numbers, products of all pairs, two MLPs, batch 256;
-- SGD 0.1, momentum 0.9.
require 'nngraph'

local function mlp(...)
   local sizes, net = { ... }, nn.Sequential()
   for i = 2, #sizes do net:add(nn.Linear(sizes[i - 1], sizes[i])):add(nn.ReLU()) end
   return net
end

local function dlrm(tables, rows, d, wide, middle)
   local numbers, index = nn.Identity()(), nn.Identity()()
   local bottom = mlp(13, wide, middle, d)(numbers)
   local vectors = { nn.View(1, d)(bottom) }
   for i = 1, tables do vectors[i + 1] = nn.View(1, d)(nn.LookupTable(rows, d)(nn.Select(2, i)(index))) end
   local pairs = nn.DotInteraction(tables + 1)(nn.JoinTable(2)(vectors))
   local top = mlp(d + tables * (tables + 1) / 2, wide, middle):add(nn.Linear(middle, 1)):add(nn.View(-1))
   return nn.gModule({ numbers, index }, { top(nn.JoinTable(2)({ bottom, pairs })) })
end

return function(o)
   o = o or {}
   local tables, rows, batch = o.tables or 26, o.rows or 10000, o.batch or 256
   local net = dlrm(tables, rows, o.d or 64, o.wide or 512, o.middle or 256)
   local criterion = nn.BCEWithLogitsCriterion()
   local params, grads = net:getParameters()
   local state = { learningRate = 0.1, momentum = 0.9, dampening = 0 }
   local x = { torch.randn(batch, 13), torch.LongTensor(batch, tables):random(rows) }
   local y = torch.rand(batch):round()

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
