-- Layers over sequences: recurrent ones against their equations, attention against its definition; gradients by differences.
local check = require 'support.module_check'

local function sigmoid(x) return torch.sigmoid(x) end

describe('recurrent layers', function()
   before_each(function() torch.manualSeed(51) end)

   it('nn.SeqLSTM is the LSTM equations, step by step', function()
      for _, biases in ipairs {1, 2} do
         local m, x = nn.SeqLSTM(3, 4, biases), torch.randn(5, 2, 3)
         m.bias:normal()
         local y = check.module(m, x)
         local b = biases == 2 and m.bias[1] + m.bias[2] or m.bias
         local h, c = torch.zeros(2, 4), torch.zeros(2, 4)
         for t = 1, 5 do
            local g = x[t] * m.weight:narrow(1, 1, 3) + h * m.weight:narrow(1, 4, 4) + b:view(1, 16):expand(2, 16)
            local function part(k) return g:narrow(2, 4 * k - 3, 4):clone() end
            c = torch.cmul(sigmoid(part(2)), c) + torch.cmul(sigmoid(part(1)), torch.tanh(part(4)))
            h = torch.cmul(sigmoid(part(3)), torch.tanh(c))
            assert.near(y[t], h, 1e-10)
         end
      end
   end)

   it('nn.SeqLSTM takes the batch first and starting states', function()
      local m, x = nn.SeqLSTM(3, 4), torch.randn(5, 2, 3)
      local want = m:forward(x):clone()
      m.batchfirst = true
      assert.near(m:forward(x:transpose(1, 2)), want:transpose(1, 2), 1e-12)
      m.batchfirst = false
      assert.near(m:forward {torch.zeros(2, 4), torch.zeros(2, 4), x}, want, 1e-12)
      check.module(m, {torch.randn(2, 4), torch.randn(2, 4), x})
      check.module(m, {torch.randn(2, 4), x})
      assert.error_matches(function() m:forward(torch.randn(5, 2, 2)) end, 'need 3 dimensions, the last of 3')
   end)

   it('nn.SeqGRU is the GRU equations, step by step', function()
      local m, x = nn.SeqGRU(3, 4), torch.randn(5, 2, 3)
      local y = check.module(m, x)
      local h, W, R = torch.zeros(2, 4), m.weight:narrow(1, 1, 3), m.weight:narrow(1, 4, 4)
      for t = 1, 5 do
         local a = x[t] * W + m.bias:view(1, 12):expand(2, 12)
         local gates = sigmoid(a:narrow(2, 1, 8) + h * R:narrow(2, 1, 8))
         local r, u = gates:narrow(2, 1, 4), gates:narrow(2, 5, 4)
         local new = torch.tanh(a:narrow(2, 9, 4) + torch.cmul(r, h) * R:narrow(2, 9, 4))
         h = torch.cmul(u, h) + torch.cmul(new, torch.ones(2, 4) - u)
         assert.near(y[t], h, 1e-10)
      end
      m.batchfirst = true
      assert.near(m:forward(x:transpose(1, 2)), y:transpose(1, 2), 1e-12)
      m.batchfirst = false
      check.module(m, {torch.randn(2, 4), x})
   end)
end)

describe('attention', function()
   before_each(function() torch.manualSeed(52) end)

   -- One query row by its definition.
   local function row(q, k, v, n)
      local w = (k:narrow(1, 1, n) * q) / math.sqrt(q:size(1))
      w = torch.exp(w - w:max())
      return v:narrow(1, 1, n):t() * (w / w:sum())
   end

   it('torch.attention, whole, causal and with heads', function()
      local q, k, v = torch.randn(2, 4, 3), torch.randn(2, 4, 3), torch.randn(2, 4, 5)
      local all, causal = torch.attention(q, k, v), torch.attention(q, k, v, nil, true)
      for b = 1, 2 do
         for i = 1, 4 do
            assert.near(all[b][i], row(q[b][i], k[b], v[b], 4), 1e-10)
            assert.near(causal[b][i], row(q[b][i], k[b], v[b], i), 1e-10)
         end
      end
      local function heads(x) return x:view(1, 2, x:size(2), x:size(3)) end
      assert.near(torch.attention(heads(q), heads(k), heads(v))[1], all, 1e-12)
      local mask = torch.zeros(2, 4, 4)
      for i = 1, 4 do
         for j = i + 1, 4 do mask:select(2, i):select(2, j):fill(-math.huge) end
      end
      assert.near(torch.attention(q, k, v, mask), causal, 1e-12)
      assert.near(torch.attention(q, k, v, nil, false, 1), torch.attention(q * math.sqrt(3), k, v), 1e-12)
      assert.error_matches(function() torch.attention(q, k, v[1]) end, '%[attention%] q, k, v; got 3, 3 and 2 dimensions')
   end)

   it('nn.SelfAttention and nn.MultiHeadAttention', function()
      for _, causal in ipairs {false, true} do
         local m, x = nn.SelfAttention(2, causal), torch.randn(2, 3, 12)
         local y = check.module(m, x)
         for b = 1, 2 do
            for h = 0, 1 do
               local function part(i) return x[b]:narrow(2, 4 * i + 2 * h + 1, 2) end
               for t = 1, 3 do
                  assert.near(y[b][t]:narrow(1, 2 * h + 1, 2), row(part(0)[t], part(1), part(2), causal and t or 3), 1e-10)
               end
            end
         end
      end
      check.module(nn.MultiHeadAttention(4, 2, true), torch.randn(2, 3, 4), {tolerance = 1e-5})
      assert.error_matches(function() nn.SelfAttention(5):forward(torch.randn(2, 3, 12)) end, 'multiple of 5 heads')
   end)

   it('nn.PositionalEmbedding, nn.ClassToken, nn.DotInteraction', function()
      local p, x = nn.PositionalEmbedding(5, 4), torch.randn(2, 3, 4)
      local y = check.module(p, x)
      assert.near(y[2][3], x[2][3] + p.weight[3], 1e-12)
      assert.error_matches(function() p:forward(torch.randn(1, 6, 4)) end, 'got 6, need at most 5')
      local c = nn.ClassToken(4):reset(1)
      y = check.module(c, x)
      assert.near(y[2][1], c.weight[1][1], 0)
      assert.near(y[2]:narrow(1, 2, 3), x[2], 0)
      y = check.module(nn.DotInteraction(3), x)
      assert.same({2, 3}, y:size():totable())
      assert.near(y[2], torch.Tensor {x[2][2]:dot(x[2][1]), x[2][3]:dot(x[2][1]), x[2][3]:dot(x[2][2])}, 1e-12)
   end)
end)
