-- bert: a two-class reader of texts (Devlin et al. 2018): 12 layers, 12 heads, 768 wide, 30522 tokens, 128 a text, dropout 0.1, batch 4;
-- AdamW 0.00002.
return function(o)
   o = o or {}
   local tokens, context, width, heads, layers = o.tokens or 30522, o.context or 512, o.width or 768, o.heads or 12, o.layers or 12
   local batch, length = o.batch or 4, o.length or 128
   local net = nn.Sequential():add(nn.LookupTable(tokens, width)):add(nn.PositionalEmbedding(context, width)):add(nn.LayerNorm(width))
   for _ = 1, layers do net:add(nn.TransformerBlock(width, heads, false, 0.1)) end
   net:add(nn.Select(2, 1)):add(nn.Linear(width, width)):add(nn.Tanh()):add(nn.Linear(width, 2))
   local criterion = nn.CrossEntropyCriterion()
   local params, grads = net:getParameters()
   local state = { learningRate = 2e-5 }
   local x, y = torch.LongTensor(batch, length):random(tokens), torch.LongTensor(batch):random(2)

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
