-- Losses and cells from their definitions (arrays -> arrays).
local nd = require 'support.nd'
local ref = {}

local function value(ops, dtype, size, lo, hi) return ops.sample(size, dtype, lo or -2, hi or 2) end

local function classes(ops, n, c, base, dtype)
   local y = nd.new({ n }, function() return math.floor(ops.uniform() * c) + base end)
   y.dtype = dtype or 'Long'
   return y
end

-- Weighted mean or sum of x at its classes; see nll_loss.
local function nll(a, at)
   local x, y, w = a[1], a[2], a[3]
   local sum, total = 0, 0
   for i = 1, y.n do
      if y[i] ~= at.ignore then
         local c = y[i] - at.base
         local t = w and w[c + 1] or 1
         sum, total = sum - t * x[nd.at(x.size, { i - 1, c })], total + t
      end
   end
   return at.average and sum / (total == 0 and 1 or total) or sum, total
end

local function labelled(dtype, ops)
   local ignored = classes(ops, 5, 4, 1)
   ignored[2] = 3
   return {
      { inputs = { value(ops, dtype, { 4, 3 }), classes(ops, 4, 3, 0), false } },
      { inputs = { value(ops, dtype, { 5, 4 }), ignored, value(ops, dtype, { 4 }, 0.5, 2) }, attrs = { true, 1, 3 } },
      { inputs = { value(ops, dtype, { 2, 4 }), classes(ops, 2, 1, 3), value(ops, dtype, { 4 }, 0.5, 2) }, attrs = { true, 1, 3 } }, -- nothing counts
      { inputs = { value(ops, dtype, { 4, 3 }), classes(ops, 4, 3, 1, 'Float'), value(ops, dtype, { 3 }, 0.5, 2) }, attrs = { false, 1 } },
   }
end
ref.nll_loss = { layouts = { 'contiguous', 'sliced' }, samples = labelled, tolerance = 40, ref = function(a, at)
   local loss, total = nll(a, at)
   return { nd.new({}, loss), nd.new({}, total) }
end }
ref.cross_entropy = { layouts = { 'contiguous', 'sliced' }, samples = labelled, tolerance = 40, ref = function(a, at)
   local logs = require('reference.norm').log_softmax.ref({ a[1] }, { dim = 1 })
   return nd.new({}, (nll({ logs, a[2], a[3] }, at)))
end }

local function pairwise(f, lo, hi, weighted, lo2, hi2)
   return { tolerance = 60, samples = function(dtype, ops)
      local function x() return value(ops, dtype, { 3, 4 }, lo, hi) end
      local function y() return value(ops, dtype, { 3, 4 }, lo2 or lo, hi2 or hi) end
      local list = { { inputs = { x(), y() }, attrs = { true } }, { inputs = { x(), y() }, attrs = { false } } }
      if weighted then list[3] = { inputs = { x(), y(), value(ops, dtype, { 3, 4 }, 0.5, 2) }, attrs = { true } } end
      for _, s in ipairs(list) do
         if weighted and #s.inputs == 2 then s.inputs[3] = false end
      end
      return list
   end, ref = function(a, at)
      local s = 0
      for i = 1, a[1].n do s = s + f(a[1][i], a[2][i], at) * (a[3] and a[3][i] or 1) end
      return nd.new({}, at.average and s / a[1].n or s)
   end }
end

ref.mse_loss = pairwise(function(x, y) return (x - y) ^ 2 end)
ref.l1_loss = pairwise(function(x, y) return math.abs(x - y) end)
ref.smooth_l1_loss = pairwise(function(x, y)
   local d = math.abs(x - y)
   return d < 1 and d * d / 2 or d - 0.5
end)
ref.bce_loss = pairwise(function(x, y, at) return -(y * math.log(x + at.eps) + (1 - y) * math.log(1 - x + at.eps)) end, 0.1, 0.9, true)
ref.bce_logits_loss = pairwise(function(x, y) return math.max(x, 0) - x * y + math.log(1 + math.exp(-math.abs(x))) end, -2, 2, true, 0, 1)
ref.kl_loss = pairwise(function(x, y) return y > 0 and y * (math.log(y) - x) or 0 end, -2, 2, false, 0.1, 1)

ref.dist = { tolerance = 60, samples = function(dtype, ops)
   local list = {}
   for i, p in ipairs { 2, 1, 3 } do list[i] = { inputs = { value(ops, dtype, { 3, 2 }), value(ops, dtype, { 3, 2 }) }, attrs = { p } } end
   return list
end, ref = function(a, at)
   local s = 0
   for i = 1, a[1].n do s = s + math.abs(a[1][i] - a[2][i]) ^ at.p end
   return nd.new({}, s ^ (1 / at.p))
end }

-- Hochreiter and Schmidhuber 1997 with forget gates: input, forget, output, candidate.
ref.lstm_cell = { tolerance = 20, samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 2, 12 }), value(ops, dtype, { 2, 3 }) } } }
end, ref = function(a)
   local scalar = require 'reference.elementwise'
   local n = a[2].size[2]
   local h, c = nd.new(a[2].size, 0), nd.new(a[2].size, 0)
   for p = 1, c.n do
      local index = nd.index(c.size, p)
      local function gate(k) return a[1][nd.at(a[1].size, { index[1], k * n + index[2] })] end
      c[p] = scalar.sigmoid(gate(1)) * a[2][p] + scalar.sigmoid(gate(0)) * scalar.tanh(gate(3))
      h[p] = scalar.sigmoid(gate(2)) * scalar.tanh(c[p])
   end
   return { h, c }
end }

return ref
