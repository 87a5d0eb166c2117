-- Special functions of the reference in plain Lua, from their series and asymptotic expansions (Abramowitz and Stegun, chapters 6 and 7).
local special = {}

-- 7.1.5 below 1.5, the continued fraction 7.1.14 of erfc above.
local function erfcTail(x)
   local f = 0
   for k = 200, 1, -1 do f = k / 2 / (x + f) end
   return math.exp(-x * x) / math.sqrt(math.pi) / (x + f)
end

--- Error function.
function special.erf(x)
   if x ~= x then return x end
   local a = math.abs(x)
   if a > 1.5 then return (x > 0 and 1 or -1) * (1 - erfcTail(a)) end
   local sum, term, n = x, x, 0
   repeat
      n = n + 1
      term = -term * x * x / n
      sum = sum + term / (2 * n + 1)
   until math.abs(term) < 1e-18 or n > 200
   return 2 / math.sqrt(math.pi) * sum
end

--- 1 - erf(x), exact where that cancels.
function special.erfc(x)
   return x > 1.5 and erfcTail(x) or 1 - special.erf(x)
end

-- 6.1.41 after lifting the argument above 12.
local function stirling(x)
   local inv = 1 / x
   local i2 = inv * inv
   return (x - 0.5) * math.log(x) - x + 0.5 * math.log(2 * math.pi)
      + inv * (1 / 12 - i2 * (1 / 360 - i2 * (1 / 1260 - i2 * (1 / 1680 - i2 * (1 / 1188)))))
end

--- Logarithm of |gamma(x)|.
function special.lgamma(x)
   if x <= 0 then
      if x == math.floor(x) then return math.huge end
      return math.log(math.pi / math.abs(math.sin(math.pi * x))) - special.lgamma(1 - x)
   end
   local shift = 0
   while x < 12 do
      shift = shift + math.log(x)
      x = x + 1
   end
   return stirling(x) - shift
end

return special
