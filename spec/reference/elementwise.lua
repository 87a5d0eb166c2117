-- Elementwise ops, one scalar at a time: f(x, y, z, w, attributes, info) -> number; info.int says that the dtype is an integer.
-- Results of integers are wrapped, and those of narrow floats rounded, by the driver.
local special = require 'reference.special'
local bit = require 'bit'
local abs, exp, log, floor, sqrt, huge = math.abs, math.exp, math.log, math.floor, math.sqrt, math.huge
local ref = {}

local function trunc(x)
   return x < 0 and math.ceil(x) or floor(x)
end

-- Half to even, as C's rint and NumPy.
local function rint(x)
   local f = floor(x)
   local d = x - f
   if d < 0.5 or d == 0.5 and f % 2 == 0 then return f end
   return f + 1
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
ref.exp, ref.log, ref.sqrt, ref.floor, ref.ceil, ref.trunc = exp, log, sqrt, floor, math.ceil, trunc
function ref.exp2(x) return 2 ^ x end
function ref.log2(x) return log(x) / log(2) end
function ref.log10(x) return log(x) / log(10) end
ref.log1p, ref.expm1, ref.tanh, ref.sigmoid = log1p, expm1, tanh, sigmoid
function ref.rsqrt(x) return 1 / sqrt(x) end
function ref.reciprocal(x) return 1 / x end
ref.cinv, ref.recip, ref.inv = ref.reciprocal, ref.reciprocal, ref.reciprocal
function ref.square(x) return x * x end
function ref.frac(x) return x - trunc(x) end
ref.round = rint
ref.sin, ref.cos, ref.tan, ref.asin, ref.acos, ref.atan = math.sin, math.cos, math.tan, math.asin, math.acos, math.atan
function ref.sinh(x) return (exp(x) - exp(-x)) / 2 end
function ref.cosh(x) return (exp(x) + exp(-x)) / 2 end
function ref.asinh(x) return (x < 0 and -1 or 1) * log(abs(x) + sqrt(x * x + 1)) end
function ref.acosh(x) return log(x + sqrt(x * x - 1)) end
function ref.atanh(x) return 0.5 * log((1 + x) / (1 - x)) end
ref.erf, ref.erfc, ref.erfinv = special.erf, special.erfc, special.erfinv
ref.lgamma, ref.digamma, ref.trigamma = special.lgamma, special.digamma, special.trigamma
function ref.isnan(x) return flag(nan(x)) end
function ref.isinf(x) return flag(abs(x) == huge) end
function ref.isfinite(x) return flag(not nan(x) and abs(x) ~= huge) end
function ref.logical_not(x) return flag(x == 0) end
ref.lnot, ref.not_ = ref.logical_not, ref.logical_not
function ref.bitnot(x) return -x - 1 end
ref.bnot = ref.bitnot
function ref.cast(x) return x end -- the driver rounds and wraps
function ref.copy(x) return x end
ref.clone, ref.identity, ref.contiguous = ref.copy, ref.copy, ref.copy

-- activations
function ref.relu(x) return (x > 0 or nan(x)) and x or 0 end
function ref.relu6(x) return math.min(math.max(x, 0), 6) end
function ref.softplus(x, _, _, _, a)
   local beta, threshold = a.beta or 1, a.threshold or 20
   return x * beta > threshold and x or log1p(exp(x * beta)) / beta
end
function ref.softsign(x) return x / (1 + abs(x)) end
function ref.logsigmoid(x) return math.min(x, 0) - log1p(exp(-abs(x))) end
ref.log_sigmoid = ref.logsigmoid
function ref.silu(x) return x * sigmoid(x) end
ref.swish = ref.silu
function ref.mish(x) return x * tanh(log1p(exp(x))) end
function ref.gelu(x) return 0.5 * x * special.erfc(-x / sqrt(2)) end
function ref.gelu_tanh(x) return 0.5 * x * (1 + tanh(sqrt(2 / math.pi) * (x + 0.044715 * x ^ 3))) end
function ref.leaky_relu(x, _, _, _, a) return x > 0 and x or x * (a.slope or a.negval or 0.01) end
ref.leakyrelu = ref.leaky_relu
function ref.elu(x, _, _, _, a) return x > 0 and x or (a.alpha or 1) * expm1(x) end
function ref.selu(x)
   local alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
   return scale * (x > 0 and x or alpha * expm1(x))
end
function ref.hardtanh(x, _, _, _, a)
   return math.min(math.max(x, a.lo or a.min or -1), a.hi or a.max or 1)
end
function ref.hard_sigmoid(x) return math.min(math.max(x / 6 + 0.5, 0), 1) end
function ref.hardshrink(x, _, _, _, a)
   local l = a.lambda or 0.5
   return (x > l or x < -l) and x or 0
end
function ref.softshrink(x, _, _, _, a)
   local l = a.lambda or 0.5
   return x > l and x - l or x < -l and x + l or 0
end
function ref.threshold(x, _, _, _, a) return x > (a.threshold or a.t or 0) and x or (a.value or a.val or a.v or 0) end

-- two inputs
function ref.add(x, y) return x + y end
function ref.sub(x, y) return x - y end
function ref.mul(x, y) return x * y end
function ref.div(x, y, _, _, _, info) return info.int and trunc(x / y) or x / y end
function ref.pow(x, y) return x ^ y end
ref.atan2 = math.atan2
function ref.hypot(x, y) return sqrt(x * x + y * y) end
function ref.max(x, y) return (nan(x) or nan(y)) and 0 / 0 or math.max(x, y) end
function ref.min(x, y) return (nan(x) or nan(y)) and 0 / 0 or math.min(x, y) end
ref.maximum, ref.minimum, ref.cmax, ref.cmin = ref.max, ref.min, ref.max, ref.min
function ref.fmod(x, y) return x - trunc(x / y) * y end
function ref.remainder(x, y) return x - floor(x / y) * y end
ref.mod = ref.remainder
function ref.floordiv(x, y) return floor(x / y) end
ref.floor_div = ref.floordiv
function ref.truncdiv(x, y) return trunc(x / y) end
function ref.lt(x, y) return flag(x < y) end
function ref.le(x, y) return flag(x <= y) end
function ref.gt(x, y) return flag(x > y) end
function ref.ge(x, y) return flag(x >= y) end
function ref.eq(x, y) return flag(x == y) end
function ref.ne(x, y) return flag(x ~= y) end
ref.logical_and = function(x, y) return flag(x ~= 0 and y ~= 0) end
ref.logical_or = function(x, y) return flag(x ~= 0 or y ~= 0) end
ref.logical_xor = function(x, y) return flag((x ~= 0) ~= (y ~= 0)) end
ref.land, ref.lor, ref.lxor = ref.logical_and, ref.logical_or, ref.logical_xor
ref.bitand, ref.bitor, ref.bitxor = bit.band, bit.bor, bit.bxor
ref.band, ref.bor, ref.bxor = bit.band, bit.bor, bit.bxor
function ref.lshift(x, y) return x * 2 ^ y end
function ref.rshift(x, y) return floor(x / 2 ^ y) end
ref.shl, ref.shr = ref.lshift, ref.rshift
function ref.copysign(x, y) return abs(x) * ((y < 0 or 1 / y < 0) and -1 or 1) end
function ref.xlogy(x, y) return x == 0 and 0 or x * log(y) end
function ref.heaviside(x, y) return x > 0 and 1 or x < 0 and 0 or y end

-- three and four inputs
function ref.where(x, y, z) return x ~= 0 and y or z end
function ref.clamp(x, lo, hi) return math.min(math.max(x, lo), hi) end
function ref.lerp(x, y, z) return x + z * (y - x) end
function ref.fma(x, y, z) return x * y + z end
function ref.axpy(x, y, s) return x + s * y end
function ref.addcmul(x, y, z, w) return x + (w or 1) * y * z end
function ref.addcdiv(x, y, z, w, _, info)
   local q = info.int and trunc((w or 1) * y / z) or (w or 1) * y / z
   return x + q
end

return ref
