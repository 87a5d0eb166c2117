-- Minimum of the polynomial through points with values and slopes (after Mark Schmidt's minFunc).

-- Two points with slopes: the cubic's minimiser in closed form.
local function cubic(p, lo, hi)
   local a, b = 1, 2
   if p[2][1] < p[1][1] then a, b = 2, 1 end
   local xa, fa, ga = p[a][1], p[a][2], p[a][3]
   local xb, fb, gb = p[b][1], p[b][2], p[b][3]
   local d1 = ga + gb - 3 * (fa - fb) / (xa - xb)
   local d2 = d1 ^ 2 - ga * gb
   if d2 < 0 then return (hi + lo) / 2 end
   d2 = math.sqrt(d2)
   local t = xb - (xb - xa) * ((gb + d2 - d1) / (gb - ga + 2 * d2))
   return math.min(math.max(t, lo), hi)
end

local function polyval(c, x)
   local v = 0
   for i = 1, #c do v = v * x + c[i] end
   return v
end

-- Coefficients, highest power first, that meet every value and slope given (Gaussian elimination with pivoting).
local function fit(p, order)
   local rows = {}
   for i = 1, p:size(1) do
      local x = p[i][1]
      if p[i][2] == p[i][2] then
         local r = {}
         for k = order, 0, -1 do r[#r + 1] = x ^ k end
         r[#r + 1] = p[i][2]
         rows[#rows + 1] = r
      end
      if p[i][3] == p[i][3] then
         local r = {}
         for k = order, 1, -1 do r[#r + 1] = k * x ^ (k - 1) end
         r[#r + 1], r[#r + 2] = 0, p[i][3]
         rows[#rows + 1] = r
      end
   end
   local n = order + 1
   for k = 1, n do
      local best = k
      for i = k + 1, n do
         if math.abs(rows[i][k]) > math.abs(rows[best][k]) then best = i end
      end
      rows[k], rows[best] = rows[best], rows[k]
      for i = k + 1, n do
         local f = rows[i][k] / rows[k][k]
         for j = k, n + 1 do rows[i][j] = rows[i][j] - f * rows[k][j] end
      end
   end
   local c = {}
   for k = n, 1, -1 do
      local v = rows[k][n + 1]
      for j = k + 1, n do v = v - rows[k][j] * c[j] end
      c[k] = v / rows[k][k]
   end
   return c
end

-- Real zeros of polynomial c in (lo, hi): sign changes on a fine grid, bisected.
local function zeros(c, lo, hi)
   local found, steps = {}, 1000
   local x0, v0 = lo, polyval(c, lo)
   for i = 1, steps do
      local x1 = lo + (hi - lo) * i / steps
      local v1 = polyval(c, x1)
      if v0 * v1 < 0 then
         local a, b, va = x0, x1, v0
         for _ = 1, 60 do
            local m = (a + b) / 2
            local vm = polyval(c, m)
            if va * vm <= 0 then b = m else a, va = m, vm end
         end
         found[#found + 1] = (a + b) / 2
      end
      x0, v0 = x1, v1
   end
   return found
end

--- The minimiser within bounds of the polynomial through points (n, 3): rows x, f, slope (NaN: unknown). Bounds default to the
-- smallest and largest x. Returns the place and the polynomial's value there (nil in the closed form).
return function(points, xminBound, xmaxBound)
   local n = points:size(1)
   local known, xmin, xmax = 0, math.huge, -math.huge
   for i = 1, n do
      for j = 2, 3 do
         if points[i][j] == points[i][j] then known = known + 1 end
      end
      xmin, xmax = math.min(xmin, points[i][1]), math.max(xmax, points[i][1])
   end
   local lo, hi = xminBound or xmin, xmaxBound or xmax
   if n == 2 and known == 4 then return cubic(points, lo, hi) end

   local order = known - 1
   local c = fit(points, order)
   local slope = {}
   for k = 1, order do slope[k] = c[k] * (order + 1 - k) end
   local candidates = zeros(slope, lo, hi)
   candidates[#candidates + 1], candidates[#candidates + 2] = lo, hi
   for i = 1, n do
      local x = points[i][1]
      if x >= lo and x <= hi then candidates[#candidates + 1] = x end
   end
   local best, value = (lo + hi) / 2, math.huge
   for _, x in ipairs(candidates) do
      local v = polyval(c, x)
      if v < value then best, value = x, v end
   end
   return best, value
end
