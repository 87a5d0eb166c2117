-- gpt2: GPT-2's small form (Radford et al. 2019): 12 layers, 12 heads, 768 wide, context 1024, 50304 tokens, head tied to the embedding,
-- one text of 128 tokens; AdamW 0.0003.
return function(o)
   o = o or {}
   local tokens, context, width, heads, layers = o.tokens or 50304, o.context or 1024, o.width or 768, o.heads or 12, o.layers or 12
   local batch, length = o.batch or 1, o.length or 128
   local embedding, head = nn.LookupTable(tokens, width), nn.Linear(width, tokens, false)
   local net = nn.Sequential():add(embedding):add(nn.PositionalEmbedding(context, width))
   for _ = 1, layers do net:add(nn.TransformerBlock(width, heads, true)) end
   net:add(nn.LayerNorm(width)):add(head):add(nn.View(tokens))
   head:share(embedding, 'weight', 'gradWeight')
   for _, p in ipairs(net:parameters()) do
      if p:dim() > 1 then p:normal(0, 0.02) end
   end
   local criterion = nn.CrossEntropyCriterion()
   local params, grads = net:getParameters()
   local state = { learningRate = 3e-4 }
   local x, y = torch.LongTensor(batch, length):random(tokens), torch.LongTensor(batch * length):random(tokens)

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
