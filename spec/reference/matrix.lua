-- Matrix products from their sums (arrays -> arrays).
local nd = require 'support.nd'
local ref = {}

local function value(a, dtype, ops, size) return ops.sample(size, dtype, -2, 2) end

-- (m, k) x (k, n), or the same per batch.
local function product(x, y)
   local batched = #x.size == 3
   local shift = batched and 1 or 0
   local m, k, n = x.size[1 + shift], x.size[2 + shift], y.size[2 + shift]
   local size = batched and { x.size[1], m, n } or { m, n }
   return nd.new(size, function(p)
      local index, s = nd.index(size, p), 0
      for q = 0, k - 1 do
         local xi, yi = { index[1 + shift], q }, { q, index[2 + shift] }
         if batched then
            table.insert(xi, 1, index[1])
            table.insert(yi, 1, index[1])
         end
         s = s + x[nd.at(x.size, xi)] * y[nd.at(y.size, yi)]
      end
      return s
   end)
end

local function scale(a, s)
   return nd.map(function(x) return x * s end, a)
end

local function sum(x, y)
   return nd.map(function(a, b) return a + b end, x, y)
end

-- beta m + alpha p, either factor may be absent.
local function affine(m, p, beta, alpha)
   if beta then m = scale(m, beta[1]) end
   if alpha then p = scale(p, alpha[1]) end
   return sum(m, p)
end

local function entry(sizes, f, scalars)
   return { tolerance = 60, samples = function(dtype, ops)
      local out = {}
      for i, list in ipairs(sizes) do
         local inputs = {}
         for k, size in ipairs(list) do inputs[k] = value(nil, dtype, ops, size) end
         out[i] = { inputs = inputs }
      end
      if scalars then
         for i = 1, 2 do
            local inputs = { unpack(out[1].inputs) }
            inputs[4], inputs[5] = i == 1 and nd.new({}, 2), nd.new({}, 3)
            out[#out + 1] = { inputs = inputs }
         end
      end
      return out
   end, ref = f }
end

local function matmul(a) return product(a[1], a[2]) end
ref.matmul = entry({ { { 3, 4 }, { 4, 2 } }, { { 2, 3, 4 }, { 2, 4, 2 } }, { { 1, 5 }, { 5, 1 } }, { { 3, 0 }, { 0, 2 } } }, matmul)
ref.mm = entry({ { { 3, 4 }, { 4, 2 } } }, matmul)
ref.bmm = entry({ { { 2, 3, 4 }, { 2, 4, 2 } } }, matmul)
ref.mv = entry({ { { 3, 4 }, { 4 } } }, function(a)
   return nd.reshape(product(a[1], nd.reshape(a[2], { a[2].n, 1 })), { a[1].size[1] })
end)

local function outer(x, y)
   return product(nd.reshape(x, { x.n, 1 }), nd.reshape(y, { 1, y.n }))
end
ref.ger = entry({ { { 3 }, { 4 } } }, function(a) return outer(a[1], a[2]) end)
ref.dot = entry({ { { 6 }, { 6 } }, { { 2, 3 }, { 3, 2 } } }, function(a)
   local s = 0
   for i = 1, a[1].n do s = s + a[1][i] * a[2][i] end
   return nd.new({}, s)
end)
ref.addmm = entry({ { { 3, 2 }, { 3, 4 }, { 4, 2 } } }, function(a) return affine(a[1], product(a[2], a[3]), a[4], a[5]) end, true)
ref.baddbmm = entry({ { { 2, 3, 2 }, { 2, 3, 4 }, { 2, 4, 2 } } }, ref.addmm.ref, true)
ref.addmv = entry({ { { 3 }, { 3, 4 }, { 4 } } }, function(a) return affine(a[1], ref.mv.ref { a[2], a[3] }, a[4], a[5]) end, true)
ref.addr = entry({ { { 3, 4 }, { 3 }, { 4 } } }, function(a) return affine(a[1], outer(a[2], a[3]), a[4], a[5]) end, true)
ref.addbmm = entry({ { { 3, 2 }, { 2, 3, 4 }, { 2, 4, 2 } } }, function(a)
   local p = product(a[2], a[3])
   local s = nd.new({ 3, 2 }, function(i) return p[i] + p[i + 6] end)
   return affine(a[1], s, a[4], a[5])
end, true)
ref.linear = entry({ { { 3, 4 }, { 2, 4 }, { 2 } }, { { 3, 4 }, { 2, 4 } } }, function(a)
   local y = product(a[1], nd.permute(a[2], { 2, 1 }))
   return a[3] and sum(y, a[3]) or y
end)
ref.trace = entry({ { { 3, 3 } }, { { 3, 4 } } }, function(a)
   local s = 0
   for i = 0, math.min(a[1].size[1], a[1].size[2]) - 1 do s = s + a[1][nd.at(a[1].size, { i, i })] end
   return nd.new({}, s)
end)

-- Scaled dot-product attention (Vaswani et al. 2017, equation 1).
ref.attention = { tolerance = 60, samples = function(dtype, ops)
   local function qkv()
      return value(nil, dtype, ops, { 2, 3, 4 }), value(nil, dtype, ops, { 2, 3, 4 }), value(nil, dtype, ops, { 2, 3, 2 })
   end
   local q, k, v = qkv()
   local q2, k2, v2 = qkv()
   local mask = value(nil, dtype, ops, { 3, 3 })
   return { { inputs = { q, k, v, false }, attrs = { false, 0 } }, { inputs = { q2, k2, v2, false }, attrs = { true, 0.25 } },
      { inputs = { q, k2, v, mask }, attrs = { false, 0 } } }
end, ref = function(a, at)
   local scores = scale(product(a[1], nd.permute(a[2], { 1, 3, 2 })), at.scale > 0 and at.scale or 1 / math.sqrt(a[1].size[3]))
   if a[4] then scores = sum(scores, a[4]) end
   local weights = nd.new(scores.size, 0)
   nd.lines(scores, 3, function(line, index)
      local last = at.causal and index[2] + 1 or #line
      local s = 0
      for i = 1, last do s = s + math.exp(line[i]) end
      for i = 1, last do
         index[3] = i - 1
         weights[nd.at(scores.size, index)] = math.exp(line[i]) / s
      end
      index[3] = 0
   end)
   return product(weights, a[3])
end }

return ref
