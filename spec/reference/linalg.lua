-- Linear algebra from textbooks (Golub and Van Loan): elimination, Cholesky, Householder, Jacobi (arrays -> arrays).
local nd = require 'support.nd'
local ref = {}

-- Rows of a matrix as Lua tables, and back.
local function rows(a)
   local out, n = {}, a.size[2]
   for i = 1, a.size[1] do
      out[i] = {}
      for j = 1, n do out[i][j] = a[(i - 1) * n + j] end
   end
   return out
end

local function array(t, m, n)
   return nd.new({ m, n }, function(p)
      local j = (p - 1) % n + 1
      return t[(p - j) / n + 1][j]
   end)
end

local function product(x, y)
   local out = {}
   for i = 1, #x do
      out[i] = {}
      for j = 1, #y[1] do
         local s = 0
         for k = 1, #y do s = s + x[i][k] * y[k][j] end
         out[i][j] = s
      end
   end
   return out
end

local function turned(x)
   local out = {}
   for j = 1, #x[1] do
      out[j] = {}
      for i = 1, #x do out[j][i] = x[i][j] end
   end
   return out
end

local function identity(n)
   local out = {}
   for i = 1, n do
      out[i] = {}
      for j = 1, n do out[i][j] = i == j and 1 or 0 end
   end
   return out
end

-- Elimination with row pivots: solution of m x = b, and the factors in place.
local function eliminate(m, b)
   local n = #m
   for k = 1, n do
      local p = k
      for i = k + 1, n do if math.abs(m[i][k]) > math.abs(m[p][k]) then p = i end end
      m[k], m[p], b[k], b[p] = m[p], m[k], b[p], b[k]
      for i = k + 1, n do
         local f = m[i][k] / m[k][k]
         m[i][k] = f
         for j = k + 1, n do m[i][j] = m[i][j] - f * m[k][j] end
         for j = 1, #b[1] do b[i][j] = b[i][j] - f * b[k][j] end
      end
   end
   for i = n, 1, -1 do
      for j = 1, #b[1] do
         for k = i + 1, n do b[i][j] = b[i][j] - m[i][k] * b[k][j] end
         b[i][j] = b[i][j] / m[i][i]
      end
   end
   return b, m
end

-- One triangle of a square matrix; ones on the diagonal when `unit`.
local function triangle(m, upper, unit)
   local out = {}
   for i = 1, #m do
      out[i] = {}
      for j = 1, #m do out[i][j] = i == j and unit and 1 or ((upper and j >= i or not upper and j <= i) and m[i][j] or 0) end
   end
   return out
end

-- The symmetric matrix of which one triangle is given.
local function mirrored(m, upper)
   local out = {}
   for i = 1, #m do
      out[i] = {}
      for j = 1, #m do out[i][j] = (upper and j >= i or not upper and j <= i) and m[i][j] or m[j][i] end
   end
   return out
end

local function cholesky(m) -- lower factor
   local n, l = #m, {}
   for i = 1, n do
      l[i] = {}
      for j = 1, n do
         local s = j <= i and m[i][j] or 0
         for k = 1, math.min(i, j) - 1 do s = s - (j <= i and l[i][k] * l[j][k] or 0) end
         l[i][j] = j < i and s / l[j][j] or j == i and math.sqrt(s) or 0
      end
   end
   return l
end

-- Householder's QR with LAPACK's conventions: reflector k is 1 - tau v v^T, v[k] = 1, kept below the diagonal.
local function householder(a)
   local m, n, tau = #a, #a[1], {}
   for k = 1, math.min(m, n) do
      local norm = 0
      for i = k, m do norm = norm + a[i][k] ^ 2 end
      norm = math.sqrt(norm)
      if k == m then tau[k] = 0 else
         local alpha = a[k][k]
         local beta = alpha >= 0 and -norm or norm
         tau[k] = (beta - alpha) / beta
         for i = k + 1, m do a[i][k] = a[i][k] / (alpha - beta) end
         a[k][k] = beta
         for j = k + 1, n do
            local s = a[k][j]
            for i = k + 1, m do s = s + a[i][k] * a[i][j] end
            a[k][j] = a[k][j] - tau[k] * s
            for i = k + 1, m do a[i][j] = a[i][j] - tau[k] * s * a[i][k] end
         end
      end
   end
   return a, tau
end

-- The whole Q of reflectors below the diagonal of a.
local function wholeQ(a, tau)
   local m = #a
   local q = identity(m)
   for k = 1, #tau do
      local v = {}
      for i = 1, m do v[i] = { i < k and 0 or i == k and 1 or a[i][k] } end
      local h, outer = identity(m), product(v, turned(v))
      for i = 1, m do
         for j = 1, m do h[i][j] = h[i][j] - tau[k] * outer[i][j] end
      end
      q = product(q, h)
   end
   return q
end

-- Eigenvalues of a symmetric matrix, ascending, by Jacobi's rotations.
local function jacobi(a)
   local n = #a
   for _ = 1, 60 do
      for p = 1, n do
         for q = p + 1, n do
            if a[p][q] ~= 0 then
               local theta = 0.5 * math.atan2(2 * a[p][q], a[q][q] - a[p][p])
               local c, s = math.cos(theta), math.sin(theta)
               for k = 1, n do a[k][p], a[k][q] = c * a[k][p] - s * a[k][q], s * a[k][p] + c * a[k][q] end
               for k = 1, n do a[p][k], a[q][k] = c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k] end
            end
         end
      end
   end
   local out = {}
   for i = 1, n do out[i] = a[i][i] end
   table.sort(out)
   return out
end

-- Samples -------------------------------------------------------------------------------------------------------------------------------

-- Well conditioned: a strong diagonal of distinct values.
local function strong(ops, dtype, m, n)
   local a = ops.sample({ m, n }, dtype, -1, 1)
   for i = 1, math.min(m, n) do a[(i - 1) * n + i] = a[(i - 1) * n + i] + 3 + i end
   return a
end

local function entry(sizes, attrs, f, make)
   return { dtypes = { 'Float', 'Double' }, tolerance = 400, ref = f, samples = function(dtype, ops)
      local out = {}
      for _, list in ipairs(sizes) do
         for _, at in ipairs(attrs) do
            local inputs = {}
            for k, size in ipairs(list) do
               inputs[k] = size[3] and strong(ops, dtype, size[1], size[2]) or ops.sample(size, dtype, -2, 2)
            end
            if make then inputs = make(inputs, dtype) end
            out[#out + 1] = { inputs = inputs, attrs = at }
         end
      end
      return out
   end }
end

local none, upperOrLower = { {} }, { { true }, { false } }
local system = { { { 4, 2 }, { 4, 4, 'strong' } }, { { 1, 1 }, { 1, 1, 'strong' } } }

ref.inverse = entry({ { { 4, 4, 's' } }, { { 1, 1, 's' } } }, none, function(a)
   local n = a[1].size[1]
   return array(eliminate(rows(a[1]), identity(n)), n, n)
end)

ref.gesv = entry(system, none, function(a)
   local n, k = a[1].size[1], a[1].size[2]
   local x, f = eliminate(rows(a[2]), rows(a[1]))
   return { array(x, n, k), array(f, n, n) }
end)
ref.gesv.differentiable = { true, false }

ref.gels = entry({ { { 5, 2 }, { 5, 3, 's' } }, { { 3, 2 }, { 3, 5, 's' } } }, none, function(a)
   local b, m = rows(a[1]), rows(a[2])
   local n, t = #m[1], turned(m)
   local x = #m >= n and eliminate(product(t, m), product(t, b)) or product(t, (eliminate(product(m, t), b)))
   return array(x, n, #b[1])
end)

ref.trtrs = entry(system, { {}, { false }, { true, true }, { false, true, true }, { true, false, true } }, function(a, at)
   local m = triangle(rows(a[2]), at.upper, at.unit)
   return array(eliminate(at.trans and turned(m) or m, rows(a[1])), a[1].size[1], a[1].size[2])
end)

ref.potrf = entry({ { { 4, 4, 's' } } }, upperOrLower, function(a, at)
   local l = cholesky(mirrored(rows(a[1]), at.upper))
   return array(at.upper and turned(l) or l, #l, #l)
end)

local function fromFactor(m, upper)
   local f = triangle(m, upper)
   return upper and product(turned(f), f) or product(f, turned(f))
end
ref.potri = entry({ { { 3, 3, 's' } } }, upperOrLower, function(a, at)
   local n = a[1].size[1]
   return array(eliminate(fromFactor(rows(a[1]), at.upper), identity(n)), n, n)
end)
ref.potrs = entry(system, upperOrLower, function(a, at)
   return array(eliminate(fromFactor(rows(a[2]), at.upper), rows(a[1])), a[1].size[1], a[1].size[2])
end)

-- The strong diagonal rises, so the first pivot is the last row.
ref.pstrf = entry({ { { 2, 2, 's' } } }, upperOrLower, function(a, at)
   local s = mirrored(rows(a[1]), at.upper)
   local order = { 2, 1 }
   if s[1][1] >= s[2][2] then order = { 1, 2 } end
   local p = {}
   for i = 1, 2 do p[i] = { s[order[i]][order[1]], s[order[i]][order[2]] } end
   local l = cholesky(p)
   return { array(at.upper and turned(l) or l, 2, 2), nd.new({ 2 }, function(i) return order[i] end) }
end)

local shapes = { { { 5, 3, 's' } }, { { 3, 5, 's' } }, { { 3, 3, 's' } } }
ref.geqrf = entry(shapes, none, function(a)
   local f, tau = householder(rows(a[1]))
   return { array(f, a[1].size[1], a[1].size[2]), nd.new({ #tau }, function(i) return tau[i] end) }
end)
ref.qr = entry(shapes, none, function(a)
   local m, n = a[1].size[1], a[1].size[2]
   local f, tau = householder(rows(a[1]))
   local r = {}
   for i = 1, #tau do
      r[i] = {}
      for j = 1, n do r[i][j] = j >= i and f[i][j] or 0 end
   end
   return { array(wholeQ(f, tau), m, #tau), array(r, #tau, n) }
end)

-- Reflectors as geqrf leaves them.
local function reflected(inputs)
   local f, tau = householder(rows(inputs[1]))
   inputs[1] = array(f, inputs[1].size[1], inputs[1].size[2])
   inputs[2] = nd.new({ #tau }, function(i) return tau[i] end)
   return inputs
end
local function tauOf(a)
   local tau = {}
   for i = 1, a.n do tau[i] = a[i] end
   return tau
end
ref.orgqr = entry({ { { 5, 3, 's' }, { 3 } }, { { 3, 3, 's' }, { 3 } } }, none, function(a)
   return array(wholeQ(rows(a[1]), tauOf(a[2])), a[1].size[1], a[1].size[2])
end, reflected)
ref.ormqr = entry({ { { 4, 3, 's' }, { 3 }, { 4, 4 } } }, { {}, { true, true }, { false }, { false, true } }, function(a, at)
   local q = wholeQ(rows(a[1]), tauOf(a[2]))
   if at.trans then q = turned(q) end
   return array(at.left and product(q, rows(a[3])) or product(rows(a[3]), q), a[3].size[1], a[3].size[2])
end, reflected)

-- Vectors are known up to their sign: spec/linalg_spec.lua multiplies them out.
ref.symeig = entry({ { { 4, 4, 's' } } }, { {}, { true, false } }, function(a, at)
   local e = jacobi(mirrored(rows(a[1]), at.upper))
   return { nd.new({ #e }, function(i) return e[i] end) }
end)
ref.eig = entry({ { { 3, 3, 's' } } }, { { true }, { false } }, function(a)
   local m = rows(a[1])
   return { array({ { m[1][1], 0 }, { m[2][2], 0 }, { m[3][3], 0 } }, 3, 2) }
end, function(inputs) -- triangular: the eigenvalues are the diagonal
   return { array(triangle(rows(inputs[1]), true), 3, 3) }
end)
ref.svd = entry({ { { 4, 3, 's' } }, { { 3, 4, 's' } }, { { 3, 3, 's' } } }, none, function(a)
   local m = rows(a[1])
   local e = jacobi(#m >= #m[1] and product(turned(m), m) or product(m, turned(m)))
   return { false, nd.new({ #e }, function(i) return math.sqrt(e[#e + 1 - i]) end) }
end)

return ref
