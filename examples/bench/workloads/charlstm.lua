-- charlstm: a character language model: embedding 65 -> 128, two LSTM layers of 512 over 50 steps, 65 classes, batch 50; AdamW 0.002.
return function(o)
   o = o or {}
   local tokens, size, hidden, steps, batch = o.tokens or 65, o.size or 128, o.hidden or 512, o.steps or 50, o.batch or 50

   local function layer(from)
      local lstm = nn.SeqLSTM(from, hidden, 2) -- a bias for the input and one for the state
      lstm.batchfirst = true
      lstm.weight:uniform(-1 / math.sqrt(hidden), 1 / math.sqrt(hidden))
      lstm.bias:uniform(-1 / math.sqrt(hidden), 1 / math.sqrt(hidden))
      return lstm
   end
   local net = nn.Sequential()
      :add(nn.LookupTable(tokens, size))
      :add(layer(size)):add(layer(hidden))
      :add(nn.Linear(hidden, tokens)):add(nn.View(tokens))
   local criterion = nn.CrossEntropyCriterion()
   local params, grads = net:getParameters()
   local state = { learningRate = 2e-3 }
   local x, y = torch.LongTensor(batch, steps):random(tokens), torch.LongTensor(batch * steps):random(tokens)

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
