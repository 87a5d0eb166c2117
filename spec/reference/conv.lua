-- Convolutions and pooling from their sums over windows; x is (n, c, h, w), lists are {height, width} (arrays -> arrays).
local nd = require 'support.nd'
local ref = {}

local function value(ops, dtype, size) return ops.sample(size, dtype, -2, 2) end

local function at4(a, n, c, i, j)
   local s = a.size
   return ((n * s[2] + c) * s[3] + i) * s[4] + j + 1
end

-- Calls f(n, o, c, i, j, h, w, u, v) for every product of a convolution: output (n, o, i, j), input (n, c, h, w), weight (o, c % per, u, v).
local function products(shape, at, f)
   local n, c, o, per = shape.n, shape.c, shape.o, shape.c / at.groups
   for b = 0, n - 1 do
      for k = 0, o - 1 do
         local group = math.floor(k / (o / at.groups))
         for q = 0, per - 1 do
            for i = 0, shape.oh - 1 do
               for j = 0, shape.ow - 1 do
                  for u = 0, shape.kh - 1 do
                     for v = 0, shape.kw - 1 do
                        local h = i * at.stride[1] - at.pad[1] + u * at.dilation[1]
                        local w = j * at.stride[2] - at.pad[2] + v * at.dilation[2]
                        if h >= 0 and h < shape.h and w >= 0 and w < shape.w then f(b, k, group * per + q, q, i, j, h, w, u, v) end
                     end
                  end
               end
            end
         end
      end
   end
   return c
end

local function out(size, k, stride, pad, dilation)
   return math.floor((size + 2 * pad - dilation * (k - 1) - 1) / stride) + 1
end

local function convShape(xs, ws, at)
   return { n = xs[1], c = xs[2], h = xs[3], w = xs[4], o = ws[1], kh = ws[3], kw = ws[4],
      oh = out(xs[3], ws[3], at.stride[1], at.pad[1], at.dilation[1]), ow = out(xs[4], ws[4], at.stride[2], at.pad[2], at.dilation[2]) }
end

-- Sizes of x and w, with attributes stride, pad, dilation, groups.
local settings = {
   { { 2, 2, 5, 4 }, { 3, 2, 3, 2 }, { { 1, 1 }, { 0, 0 }, { 1, 1 }, 1 } },
   { { 1, 2, 5, 6 }, { 2, 2, 3, 3 }, { { 2, 1 }, { 1, 2 }, { 1, 1 }, 1 } },
   { { 1, 4, 5, 5 }, { 2, 2, 2, 2 }, { { 1, 1 }, { 1, 0 }, { 2, 1 }, 2 } },
   { { 2, 3, 3, 3 }, { 2, 3, 1, 1 }, { { 1, 1 }, { 0, 0 }, { 1, 1 }, 1 } },
}

ref.conv2d = { tolerance = 100, samples = function(dtype, ops)
   local list = {}
   for i, s in ipairs(settings) do
      list[i] = { inputs = { value(ops, dtype, s[1]), value(ops, dtype, s[2]), i % 2 == 1 and value(ops, dtype, { s[2][1] }) }, attrs = s[3] }
   end
   return list
end, ref = function(a, at)
   local x, w = a[1], a[2]
   local s = convShape(x.size, w.size, at)
   local r = nd.new({ s.n, s.o, s.oh, s.ow }, function(p)
      return a[3] and a[3][math.floor((p - 1) / (s.oh * s.ow)) % s.o + 1] or 0
   end)
   products(s, at, function(n, o, c, q, i, j, h, v, ku, kv)
      local p = at4(r, n, o, i, j)
      r[p] = r[p] + x[at4(x, n, c, h, v)] * w[at4(w, o, q, ku, kv)]
   end)
   return r
end }

ref.conv2d_dx = { tolerance = 100, samples = function(dtype, ops)
   local list = {}
   for i, s in ipairs(settings) do
      local k = { stride = s[3][1], pad = s[3][2], dilation = s[3][3] }
      local shape = convShape(s[1], s[2], k)
      list[i] = { inputs = { value(ops, dtype, { shape.n, shape.o, shape.oh, shape.ow }), value(ops, dtype, s[2]) },
         attrs = { { s[1][3], s[1][4] }, unpack(s[3]) } }
   end
   return list
end, ref = function(a, at)
   local g, w = a[1], a[2]
   local r = nd.new({ g.size[1], w.size[2] * at.groups, at.sizes[1], at.sizes[2] }, 0)
   products(convShape(r.size, w.size, at), at, function(n, o, c, q, i, j, h, v, ku, kv)
      local p = at4(r, n, c, h, v)
      r[p] = r[p] + g[at4(g, n, o, i, j)] * w[at4(w, o, q, ku, kv)]
   end)
   return r
end }

ref.conv2d_dw = { tolerance = 100, samples = function(dtype, ops)
   local list = {}
   for i, s in ipairs(settings) do
      local k = { stride = s[3][1], pad = s[3][2], dilation = s[3][3] }
      local shape = convShape(s[1], s[2], k)
      list[i] = { inputs = { value(ops, dtype, { shape.n, shape.o, shape.oh, shape.ow }), value(ops, dtype, s[1]) },
         attrs = { { s[2][3], s[2][4] }, unpack(s[3]) } }
   end
   return list
end, ref = function(a, at)
   local g, x = a[1], a[2]
   local r = nd.new({ g.size[2], x.size[2] / at.groups, at.sizes[1], at.sizes[2] }, 0)
   products(convShape(x.size, r.size, at), at, function(n, o, c, q, i, j, h, v, ku, kv)
      local p = at4(r, o, q, ku, kv)
      r[p] = r[p] + g[at4(g, n, o, i, j)] * x[at4(x, n, c, h, v)]
   end)
   return r
end }

ref.conv_transpose2d = { tolerance = 100, samples = function(dtype, ops)
   return {
      { inputs = { value(ops, dtype, { 2, 2, 3, 3 }), value(ops, dtype, { 2, 3, 2, 3 }), value(ops, dtype, { 3 }) },
         attrs = { { 2, 1 }, { 0, 1 }, { 1, 1 }, { 1, 0 }, 1 } },
      { inputs = { value(ops, dtype, { 1, 2, 3, 2 }), value(ops, dtype, { 2, 1, 2, 2 }), false }, attrs = { { 1, 1 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, 2 } },
   }
end, ref = function(a, at)
   local x, w = a[1], a[2]
   local function long(d)
      return (x.size[d + 2] - 1) * at.stride[d] - 2 * at.pad[d] + at.dilation[d] * (w.size[d + 2] - 1) + 1 + at.adj[d]
   end
   local r = nd.new({ x.size[1], w.size[2] * at.groups, long(1), long(2) }, 0)
   local s = convShape(r.size, w.size, at)
   s.oh, s.ow = x.size[3], x.size[4]
   products(s, at, function(n, o, c, q, i, j, h, v, ku, kv)
      local p = at4(r, n, c, h, v)
      r[p] = r[p] + x[at4(x, n, o, i, j)] * w[at4(w, o, q, ku, kv)]
   end)
   if a[3] then
      local plane = r.size[3] * r.size[4]
      for p = 1, r.n do r[p] = r[p] + a[3][math.floor((p - 1) / plane) % r.size[2] + 1] end
   end
   return r
end }

-- pooling

local function pooled(size, k, stride, pad, dilation, ceil)
   local span = size + 2 * pad - dilation * (k - 1) - 1
   local n = (ceil and math.ceil or math.floor)(span / stride) + 1
   -- the last window starts inside the input or its left padding
   if ceil and (n - 1) * stride >= size + pad then n = n - 1 end
   return n
end

-- Calls f(plane, i, j, h0, w0) for each output of a pooling.
local function windows(x, at, f, dilation)
   local oh = pooled(x.size[3], at.kernel[1], at.stride[1], at.pad[1], dilation[1], at.ceil)
   local ow = pooled(x.size[4], at.kernel[2], at.stride[2], at.pad[2], dilation[2], at.ceil)
   for plane = 0, x.size[1] * x.size[2] - 1 do
      for i = 0, oh - 1 do
         for j = 0, ow - 1 do
            f(plane * oh * ow + i * ow + j + 1, plane * x.size[3] * x.size[4], i * at.stride[1] - at.pad[1], j * at.stride[2] - at.pad[2])
         end
      end
   end
   return { x.size[1], x.size[2], oh, ow }
end

ref.max_pool2d = { samples = function(dtype, ops)
   local list = {}
   for i, s in ipairs {
      { { 2, 2, 4, 6 }, { { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, false } },
      { { 1, 2, 5, 5 }, { { 3, 2 }, { 1, 2 }, { 1, 1 }, { 1, 1 }, false } },
      { { 1, 1, 5, 6 }, { { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, true } },
   } do list[i] = { inputs = { ops.sample(s[1], dtype, -20, 20) }, attrs = s[2] } end
   return list
end, ref = function(a, at)
   local x, values, places = a[1], {}, {}
   local size = windows(x, at, function(p, base, h0, w0)
      local best, place
      for u = 0, at.kernel[1] - 1 do
         for v = 0, at.kernel[2] - 1 do
            local h, w = h0 + u * at.dilation[1], w0 + v * at.dilation[2]
            if h >= 0 and h < x.size[3] and w >= 0 and w < x.size[4] then
               local k = h * x.size[4] + w
               if not best or x[base + k + 1] > best then best, place = x[base + k + 1], k end
            end
         end
      end
      values[p], places[p] = best, place
   end, at.dilation)
   return { nd.new(size, function(p) return values[p] end), nd.new(size, function(p) return places[p] end) }
end }

local function places(ops, count, most)
   local a = nd.new({ 1, 2, count[1], count[2] }, function() return math.floor(ops.uniform() * most) end)
   a.dtype = 'Long'
   return a
end

ref.max_pool2d_dx = { samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 1, 2, 2, 3 }), places(ops, { 2, 3 }, 20) }, attrs = { { 4, 5 } } } }
end, ref = function(a, at)
   local r, plane = nd.new({ 1, 2, at.sizes[1], at.sizes[2] }, 0), a[1].size[3] * a[1].size[4]
   for i = 1, a[1].n do
      local p = math.floor((i - 1) / plane) * at.sizes[1] * at.sizes[2] + a[2][i] + 1
      r[p] = r[p] + a[1][i]
   end
   return r
end, tolerance = 20 }

ref.gather_hw = { samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 1, 2, 4, 5 }), places(ops, { 2, 3 }, 20) } } }
end, ref = function(a)
   return nd.new(a[2].size, function(i) return a[1][math.floor((i - 1) / 6) * 20 + a[2][i] + 1] end)
end }

-- Elements that a window's mean divides by: those inside, or inside and padding.
local function divisor(x, at, h0, w0)
   local h1, w1 = math.min(h0 + at.kernel[1], x.size[3] + at.pad[1]), math.min(w0 + at.kernel[2], x.size[4] + at.pad[2])
   if at.count_pad then return (h1 - h0) * (w1 - w0) end
   return (math.min(h1, x.size[3]) - math.max(h0, 0)) * (math.min(w1, x.size[4]) - math.max(w0, 0))
end

-- Calls f(output, input, divisor) for each pair of an average pooling of `x`.
local function averages(x, at, f)
   return windows(x, at, function(p, base, h0, w0)
      local n = divisor(x, at, h0, w0)
      for h = math.max(h0, 0), math.min(h0 + at.kernel[1], x.size[3]) - 1 do
         for w = math.max(w0, 0), math.min(w0 + at.kernel[2], x.size[4]) - 1 do f(p, base + h * x.size[4] + w + 1, n) end
      end
   end, { 1, 1 })
end

local averageSettings = {
   { { 2, 2, 4, 6 }, { { 2, 2 }, { 2, 2 }, { 0, 0 }, false, true } },
   { { 1, 2, 5, 5 }, { { 3, 2 }, { 1, 2 }, { 1, 1 }, false, true } },
   { { 1, 1, 5, 5 }, { { 3, 3 }, { 2, 2 }, { 1, 1 }, false, false } },
   { { 1, 1, 5, 6 }, { { 2, 2 }, { 2, 2 }, { 0, 0 }, true, true } },
}
ref.avg_pool2d = { tolerance = 20, samples = function(dtype, ops)
   local list = {}
   for i, s in ipairs(averageSettings) do list[i] = { inputs = { value(ops, dtype, s[1]) }, attrs = s[2] } end
   return list
end, ref = function(a, at)
   local sums = {}
   local size = averages(a[1], at, function(p, q, n) sums[p] = (sums[p] or 0) + a[1][q] / n end)
   return nd.new(size, function(p) return sums[p] or 0 end)
end }

ref.avg_pool2d_dx = { tolerance = 20, samples = function(dtype, ops)
   local list = {}
   for i, s in ipairs(averageSettings) do
      local k = { kernel = s[2][1], stride = s[2][2], pad = s[2][3], ceil = s[2][4] }
      local size = windows({ size = s[1] }, k, function() end, { 1, 1 })
      list[i] = { inputs = { value(ops, dtype, size) }, attrs = { { s[1][3], s[1][4] }, unpack(s[2]) } }
   end
   return list
end, ref = function(a, at)
   local r = nd.new({ a[1].size[1], a[1].size[2], at.sizes[1], at.sizes[2] }, 0)
   averages(r, at, function(p, q, n) r[q] = r[q] + a[1][p] / n end)
   return r
end }

-- Window k of `n` over `size` is floor(k size / n) .. ceil((k + 1) size / n) - 1.
local function adaptive(x, sizes, f)
   local h, w = x.size[3], x.size[4]
   for plane = 0, x.size[1] * x.size[2] - 1 do
      for i = 0, sizes[1] - 1 do
         for j = 0, sizes[2] - 1 do
            local h0, h1 = math.floor(i * h / sizes[1]), math.ceil((i + 1) * h / sizes[1]) - 1
            local w0, w1 = math.floor(j * w / sizes[2]), math.ceil((j + 1) * w / sizes[2]) - 1
            for u = h0, h1 do
               for v = w0, w1 do
                  f((plane * sizes[1] + i) * sizes[2] + j + 1, (plane * h + u) * w + v + 1, (h1 - h0 + 1) * (w1 - w0 + 1))
               end
            end
         end
      end
   end
end

ref.adaptive_avg_pool2d = { tolerance = 20, samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 2, 2, 4, 6 }) }, attrs = { { 2, 3 } } }, { inputs = { value(ops, dtype, { 1, 2, 5, 4 }) }, attrs = { { 3, 1 } } } }
end, ref = function(a, at)
   local r = nd.new({ a[1].size[1], a[1].size[2], at.sizes[1], at.sizes[2] }, 0)
   adaptive(a[1], at.sizes, function(p, q, n) r[p] = r[p] + a[1][q] / n end)
   return r
end }

ref.adaptive_avg_pool2d_dx = { tolerance = 20, samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 2, 2, 2, 3 }) }, attrs = { { 4, 6 } } }, { inputs = { value(ops, dtype, { 1, 2, 3, 1 }) }, attrs = { { 5, 4 } } } }
end, ref = function(a, at)
   local r = nd.new({ a[1].size[1], a[1].size[2], at.sizes[1], at.sizes[2] }, 0)
   adaptive(r, { a[1].size[3], a[1].size[4] }, function(p, q, n) r[q] = r[q] + a[1][p] / n end)
   return r
end }

ref.upsample_nearest2d = { samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 2, 2, 2, 3 }) }, attrs = { 2 } }, { inputs = { value(ops, dtype, { 1, 1, 3, 2 }) }, attrs = { 3 } } }
end, ref = function(a, at)
   local s = a[1].size
   return nd.new({ s[1], s[2], s[3] * at.scale, s[4] * at.scale }, function(i)
      local index = nd.index({ s[1], s[2], s[3] * at.scale, s[4] * at.scale }, i)
      return a[1][at4(a[1], index[1], index[2], math.floor(index[3] / at.scale), math.floor(index[4] / at.scale))]
   end)
end }

return ref
