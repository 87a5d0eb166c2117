-- gptmini: a character language model (Radford et al. 2019): 6 layers, 6 heads, 384 wide, context 256, 65 tokens, dropout 0.2, head tied to
-- the embedding, batch 4; AdamW 0.0003.
return function(o)
   o = o or {}
   local tokens, context, width, heads, layers = o.tokens or 65, o.context or 256, o.width or 384, o.heads or 6, o.layers or 6
   local batch = o.batch or 4
   local embedding, head = nn.LookupTable(tokens, width), nn.Linear(width, tokens, false)
   local net = nn.Sequential():add(embedding):add(nn.PositionalEmbedding(context, width))
   for _ = 1, layers do net:add(nn.TransformerBlock(width, heads, true, 0.2)) end
   net:add(nn.LayerNorm(width)):add(head):add(nn.View(tokens))
   head:share(embedding, 'weight', 'gradWeight')
   for _, p in ipairs(net:parameters()) do
      if p:dim() > 1 then p:normal(0, 0.02) end
   end
   local criterion = nn.CrossEntropyCriterion()
   local params, grads = net:getParameters()
   local state = { learningRate = 3e-4 }
   local x, y = torch.LongTensor(batch, context):random(tokens), torch.LongTensor(batch * context):random(tokens)

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
