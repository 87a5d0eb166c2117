-- Elementwise ops, one scalar at a time: f(x, y, z, w, attributes, info) -> number; info.int says that the dtype is an integer.
-- Results of integers are wrapped, and those of narrow floats rounded, by the driver.
local special = require 'reference.special'
local bit = require 'bit'
local abs, exp, log, floor, sqrt, huge = math.abs, math.exp, math.log, math.floor, math.sqrt, math.huge
local ref = {}

local function trunc(x)
   return x < 0 and math.ceil(x) or floor(x)
end

-- Halves away from 0, as C's round.
local function round(x)
   return x < 0 and -floor(0.5 - x) or floor(x + 0.5)
end

local function log1p(x)
   local u = 1 + x
   if u == 1 then return x end
   return u == huge and huge or log(u) * x / (u - 1)
end

local function expm1(x)
   if abs(x) > 1e-3 then return exp(x) - 1 end
   return x + x * x / 2 + x * x * x / 6 + x ^ 4 / 24
end

local function tanh(x)
   if x ~= x then return x end
   local e = expm1(-2 * abs(x))
   return (x < 0 and 1 or -1) * e / (e + 2)
end

local function sigmoid(x)
   return 1 / (1 + exp(-x))
end

local function flag(b)
   return b and 1 or 0
end

local function nan(x)
   return x ~= x
end

-- one input
function ref.neg(x) return -x end
function ref.abs(x) return abs(x) end
function ref.sign(x) return x > 0 and 1 or x < 0 and -1 or 0 end
ref.exp, ref.sqrt, ref.floor, ref.ceil, ref.trunc = exp, sqrt, floor, math.ceil, trunc
function ref.log(x) return log(x) end
function ref.exp2(x) return 2 ^ x end
function ref.log2(x) return log(x) / log(2) end
function ref.log10(x) return log(x) / log(10) end
ref.log1p, ref.expm1, ref.tanh, ref.sigmoid = log1p, expm1, tanh, sigmoid
function ref.rsqrt(x) return 1 / sqrt(x) end
function ref.reciprocal(x) return 1 / x end
function ref.square(x) return x * x end
function ref.frac(x) return x - trunc(x) end
ref.round = round
ref.sin, ref.cos, ref.tan, ref.asin, ref.acos, ref.atan = math.sin, math.cos, math.tan, math.asin, math.acos, math.atan
function ref.sinh(x) return (exp(x) - exp(-x)) / 2 end
function ref.cosh(x) return (exp(x) + exp(-x)) / 2 end
ref.erf, ref.erfc, ref.lgamma = special.erf, special.erfc, special.lgamma
function ref.isnan(x) return flag(nan(x)) end
function ref.logical_not(x) return flag(x == 0) end
function ref.bitnot(x) return -x - 1 end
function ref.cast(x) return x end -- the driver rounds and wraps

-- activations
function ref.relu(x) return (x > 0 or nan(x)) and x or 0 end
function ref.softplus(x, _, _, _, a)
   return log1p(exp(x * a.beta)) / a.beta
end
function ref.softsign(x) return x / (1 + abs(x)) end
function ref.log_sigmoid(x) return math.min(x, 0) - log1p(exp(-abs(x))) end
function ref.silu(x) return x * sigmoid(x) end
function ref.gelu(x) return 0.5 * x * special.erfc(-x / sqrt(2)) end
function ref.leaky_relu(x, _, _, _, a) return x > 0 and x or x * a.slope end
function ref.elu(x, _, _, _, a) return x > 0 and x or a.alpha * expm1(x) end
function ref.hardtanh(x, _, _, _, a)
   return math.min(math.max(x, a.lo), a.hi)
end
function ref.hardshrink(x, _, _, _, a)
   local l = a.lambda
   return (x > l or x < -l) and x or 0
end
function ref.softshrink(x, _, _, _, a)
   local l = a.lambda
   return x > l and x - l or x < -l and x + l or 0
end
function ref.threshold(x, _, _, _, a) return x > a.th and x or a.value end

-- two inputs
function ref.add(x, y) return x + y end
function ref.sub(x, y) return x - y end
function ref.mul(x, y) return x * y end
function ref.div(x, y, _, _, _, info) return not info.int and x / y or y == 0 and 0 or trunc(x / y) end
function ref.pow(x, y) return x ^ y end
ref.atan2 = math.atan2
function ref.maximum(x, y) return (nan(x) or nan(y)) and 0 / 0 or math.max(x, y) end
function ref.minimum(x, y) return (nan(x) or nan(y)) and 0 / 0 or math.min(x, y) end
function ref.fmod(x, y) return x - trunc(x / y) * y end
function ref.remainder(x, y) return x - floor(x / y) * y end
function ref.lt(x, y) return flag(x < y) end
function ref.le(x, y) return flag(x <= y) end
function ref.gt(x, y) return flag(x > y) end
function ref.ge(x, y) return flag(x >= y) end
function ref.eq(x, y) return flag(x == y) end
function ref.ne(x, y) return flag(x ~= y) end
ref.logical_and = function(x, y) return flag(x ~= 0 and y ~= 0) end
ref.logical_or = function(x, y) return flag(x ~= 0 or y ~= 0) end
function ref.bitand(x, y) return bit.band(x, y) end
function ref.bitor(x, y) return bit.bor(x, y) end
function ref.bitxor(x, y) return bit.bxor(x, y) end
function ref.lshift(x, y) return x * 2 ^ y end
function ref.rshift(x, y, _, _, _, info) return info.int and floor(x / 2 ^ y) or x / 2 ^ y end

-- three and four inputs
function ref.where(x, y, z) return x ~= 0 and y or z end
function ref.clamp(x, lo, hi) return math.min(math.max(x, lo), hi) end
function ref.lerp(x, y, z) return x + z * (y - x) end
function ref.axpy(x, y, s) return x + s * y end
function ref.addcmul(x, y, z, w) return x + w * y * z end
function ref.addcdiv(x, y, z, w, _, info)
   return x + w * (info.int and trunc(y / z) or y / z)
end

return ref
