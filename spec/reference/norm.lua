-- Softmax and normalisations from their definitions (arrays -> arrays).
local nd = require 'support.nd'
local ref = {}

local function value(ops, dtype, size, lo, hi) return ops.sample(size, dtype, lo or -2, hi or 2) end

-- Applies f(line) -> line along dim (from 0) of one or two arrays.
local function along(dim, f, x, y)
   local out, d = nd.new(x.size, 0), dim + 1
   nd.lines(x, d, function(line, index)
      local other = {}
      if y then
         for k = 0, #line - 1 do
            index[d] = k
            other[k + 1] = y[nd.at(y.size, index)]
         end
      end
      for k, v in ipairs(f(line, other)) do
         index[d] = k - 1
         out[nd.at(out.size, index)] = v
      end
      index[d] = 0
   end)
   return out
end

local function softmax(line)
   local most, sum, out = -math.huge, 0, {}
   for _, v in ipairs(line) do most = math.max(most, v) end
   for i, v in ipairs(line) do
      out[i] = math.exp(v - most)
      sum = sum + out[i]
   end
   for i in ipairs(out) do out[i] = out[i] / sum end
   return out
end

local function one(dtype, ops)
   return { { inputs = { value(ops, dtype, { 3, 5 }) }, attrs = { 1 } }, { inputs = { value(ops, dtype, { 2, 4, 3 }) }, attrs = { 1 } },
      { inputs = { value(ops, dtype, { 4, 2 }, -30, 30) }, attrs = { 0 } } }
end
ref.softmax = { samples = one, ref = function(a, at) return along(at.dim, softmax, a[1]) end, tolerance = 40 }
ref.log_softmax = { samples = one, tolerance = 40, ref = function(a, at)
   return along(at.dim, function(line)
      local most, sum, out = -math.huge, 0, {}
      for _, v in ipairs(line) do most = math.max(most, v) end
      for _, v in ipairs(line) do sum = sum + math.exp(v - most) end
      for i, v in ipairs(line) do out[i] = v - most - math.log(sum) end
      return out
   end, a[1])
end }

local function two(dtype, ops)
   return { { inputs = { value(ops, dtype, { 3, 5 }), value(ops, dtype, { 3, 5 }, 0.1, 1) }, attrs = { 1 } },
      { inputs = { value(ops, dtype, { 2, 4, 3 }), value(ops, dtype, { 2, 4, 3 }, 0.1, 1) }, attrs = { 1 } } }
end
ref.softmax_dx = { samples = two, tolerance = 40, ref = function(a, at)
   return along(at.dim, function(g, r)
      local s, out = 0, {}
      for i in ipairs(g) do s = s + g[i] * r[i] end
      for i in ipairs(g) do out[i] = r[i] * (g[i] - s) end
      return out
   end, a[1], a[2])
end }
ref.log_softmax_dx = { samples = two, tolerance = 40, ref = function(a, at)
   return along(at.dim, function(g, r)
      local s, out = 0, {}
      for i in ipairs(g) do s = s + g[i] end
      for i in ipairs(g) do out[i] = g[i] - math.exp(r[i]) * s end
      return out
   end, a[1], a[2])
end }

-- Groups of positions that are normalised together: key(index) -> group from 1, place(index) -> position in w and b.
local function moments(x, groups, key)
   local n, sum, square = {}, {}, {}
   for g = 1, groups do n[g], sum[g], square[g] = 0, 0, 0 end
   for i = 1, x.n do
      local g = key(nd.index(x.size, i))
      n[g], sum[g] = n[g] + 1, sum[g] + x[i]
   end
   for g = 1, groups do sum[g] = sum[g] / n[g] end
   for i = 1, x.n do
      local g = key(nd.index(x.size, i))
      square[g] = square[g] + (x[i] - sum[g]) ^ 2
   end
   for g = 1, groups do square[g] = square[g] / n[g] end
   return sum, square, n
end

local function normalise(x, groups, key, place, w, b, eps)
   local mean, var, n = moments(x, groups, key)
   local r = nd.new(x.size, function(i)
      local index = nd.index(x.size, i)
      local g, p = key(index), place(index)
      local h = (x[i] - mean[g]) / math.sqrt(var[g] + eps)
      return h * (w and w[p] or 1) + (b and b[p] or 0)
   end)
   return r, mean, var, n
end

-- Gradients for x, w and b of the same: the textbook form with h = (x - mean) / deviation.
local function gradients(g, x, groups, key, place, w, mean, rstd, wsize)
   local h = nd.new(x.size, function(i)
      local k = key(nd.index(x.size, i))
      return (x[i] - mean[k]) * rstd[k]
   end)
   local sumG, sumGH, n, dw, db = {}, {}, {}, nd.new(wsize, 0), nd.new(wsize, 0)
   for k = 1, groups do sumG[k], sumGH[k], n[k] = 0, 0, 0 end
   local function q(i, p) return g[i] * (w and w[p] or 1) end
   for i = 1, x.n do
      local index = nd.index(x.size, i)
      local k, p = key(index), place(index)
      sumG[k], sumGH[k], n[k] = sumG[k] + q(i, p), sumGH[k] + q(i, p) * h[i], n[k] + 1
      dw[p], db[p] = dw[p] + g[i] * h[i], db[p] + g[i]
   end
   local dx = nd.new(x.size, function(i)
      local index = nd.index(x.size, i)
      local k = key(index)
      return rstd[k] * (q(i, place(index)) - sumG[k] / n[k] - h[i] * sumGH[k] / n[k])
   end)
   return { dx, dw, db }
end

local function channel(index) return index[2] + 1 end
local function list(a, size) return nd.new(size, function(i) return a[i] end) end

local function batches(dtype, ops)
   return {
      { inputs = { value(ops, dtype, { 3, 2, 2, 3 }), value(ops, dtype, { 2 }), value(ops, dtype, { 2 }) } },
      { inputs = { value(ops, dtype, { 4, 3 }), false, false }, attrs = { 1e-3 } },
   }
end
ref.batch_norm = { samples = batches, tolerance = 100, ref = function(a, at)
   local c = a[1].size[2]
   local r, mean, var = normalise(a[1], c, channel, channel, a[2], a[3], at.eps)
   return { r, list(mean, { c }), list(var, { c }) }
end }

ref.batch_norm_grad = { tolerance = 400, samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 3, 2, 2, 3 }), value(ops, dtype, { 3, 2, 2, 3 }), value(ops, dtype, { 2 }), value(ops, dtype, { 2 }),
      value(ops, dtype, { 2 }, 0.5, 2) } } }
end, ref = function(a, at)
   local rstd = {}
   for i = 1, 2 do rstd[i] = 1 / math.sqrt(a[5][i] + at.eps) end
   return gradients(a[1], a[2], 2, channel, channel, a[3], a[4], rstd, { 2 })
end }

ref.batch_norm_eval = { tolerance = 100, samples = function(dtype, ops)
   local function stats() return value(ops, dtype, { 2 }), value(ops, dtype, { 2 }, 0.5, 2) end
   local m, v = stats()
   local m2, v2 = stats()
   return { { inputs = { value(ops, dtype, { 3, 2, 2, 2 }), m, v, value(ops, dtype, { 2 }), value(ops, dtype, { 2 }) } },
      { inputs = { value(ops, dtype, { 3, 2 }), m2, v2, false, false } } }
end, ref = function(a, at)
   return nd.new(a[1].size, function(i)
      local c = channel(nd.index(a[1].size, i))
      return (a[1][i] - a[2][c]) / math.sqrt(a[3][c] + at.eps) * (a[4] and a[4][c] or 1) + (a[5] and a[5][c] or 0)
   end)
end }

-- The last `ndims` dimensions together: which group, and which place in it.
local function lastDims(size, ndims)
   local inner, kept = 1, {}
   for d = #size - ndims + 1, #size do inner = inner * size[d] end
   for d = 1, #size do kept[d] = d <= #size - ndims and size[d] or 1 end
   return nd.count(kept), kept, function(index) return math.floor((nd.at(size, index) - 1) / inner) + 1 end,
      function(index) return (nd.at(size, index) - 1) % inner + 1 end
end

ref.layer_norm = { tolerance = 100, samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 3, 6 }), value(ops, dtype, { 6 }), value(ops, dtype, { 6 }) } },
      { inputs = { value(ops, dtype, { 2, 3, 4 }), false, false }, attrs = { 2, 1e-3 } } }
end, ref = function(a, at)
   local groups, kept, key, place = lastDims(a[1].size, at.ndims)
   local r, mean, var = normalise(a[1], groups, key, place, a[2], a[3], at.eps)
   return { r, list(mean, kept), nd.new(kept, function(i) return 1 / math.sqrt(var[i] + at.eps) end) }
end }

ref.layer_norm_grad = { tolerance = 400, samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 3, 6 }), value(ops, dtype, { 3, 6 }), value(ops, dtype, { 6 }), value(ops, dtype, { 3, 1 }),
      value(ops, dtype, { 3, 1 }, 0.5, 2) }, attrs = { 1 } } }
end, ref = function(a, at)
   local groups, _, key, place = lastDims(a[2].size, at.ndims)
   return gradients(a[1], a[2], groups, key, place, a[3], a[4], a[5], { 6 })
end }

ref.group_norm = { tolerance = 100, samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 2, 4, 2, 2 }), value(ops, dtype, { 4 }), value(ops, dtype, { 4 }) }, attrs = { 2 } },
      { inputs = { value(ops, dtype, { 2, 3, 4 }), false, false }, attrs = { 3, 1e-3 } } }
end, ref = function(a, at)
   local per = a[1].size[2] / at.groups
   return (normalise(a[1], a[1].size[1] * at.groups, function(index) return index[1] * at.groups + math.floor(index[2] / per) + 1 end,
      channel, a[2], a[3], at.eps))
end }

return ref
