-- Composite reductions: means, variances, norms, tests (arrays -> arrays).
local nd = require 'support.nd'
local fold = require('reference.reduce').fold
local ref, folds = {}, {}

local function total(v)
   local s = 0
   for i = 1, #v do s = s + v[i] end
   return s
end

local function mean(v) return total(v) / #v end

local function var(v, biased)
   local m, s = mean(v), 0
   for i = 1, #v do s = s + (v[i] - m) ^ 2 end
   return s / (biased and #v or #v - 1)
end

folds.mean = mean
function folds.var(v, at) return var(v, at.biased) end
function folds.std(v, at) return math.sqrt(var(v, at.biased)) end
function folds.any(v)
   for i = 1, #v do
      if v[i] ~= 0 then return 1 end
   end
   return 0
end
function folds.all(v)
   for i = 1, #v do
      if v[i] == 0 then return 0 end
   end
   return 1
end
function folds.logsumexp(v)
   local m, s = -math.huge, 0
   for i = 1, #v do m = math.max(m, v[i]) end
   for i = 1, #v do s = s + math.exp(v[i] - m) end
   return math.log(s) + m
end
function folds.norm(v, at)
   local s = 0
   for i = 1, #v do s = s + (at.p == 0 and (v[i] ~= 0 and 1 or 0) or math.abs(v[i]) ^ at.p) end
   return at.p == 0 and s or s ^ (1 / at.p)
end

-- The fold of `name`, with the row's attributes beside the values.
local function reduction(name)
   return function(a, at)
      local holder = require 'reference.reduce'
      holder[name] = function(v) return folds[name](v, at) end
      local out = fold(name, a[1], at.dims, at.keepdim)
      holder[name] = nil
      return out
   end
end

local function samples(lists)
   return function(dtype, ops)
      local out = {}
      for i, attrs in ipairs(lists) do out[i] = { inputs = { ops.sample({ 3, 4, 2 }, dtype, 0.3, 2) }, attrs = attrs } end
      return out
   end
end

local plain = samples { { {}, false }, { { 1 }, true }, { { 0, 2 }, false } }
ref.mean = { samples = plain, ref = reduction 'mean' }
ref.logsumexp = { samples = plain, ref = reduction 'logsumexp' }
local spread = samples { { {}, false, false }, { { 1 }, true, false }, { { 0 }, false, true } }
ref.var = { samples = spread, ref = reduction 'var', tolerance = 40 }
ref.std = { samples = spread, ref = reduction 'std', tolerance = 40 }
ref.norm = { samples = samples { { 2, {}, false }, { 1, { 1 }, true }, { 3, { 0 }, false }, { 0, {}, false } }, ref = reduction 'norm', tolerance = 40 }

local function zeroes(dtype, ops)
   local out = {}
   for i, attrs in ipairs { { {}, false }, { { 1 }, true }, { { 0 }, false } } do
      local a = ops.sample({ 3, 4 }, dtype, 0, 2)
      for k = 1, a.n do
         if k % 3 == 0 or k <= 4 then a[k] = 0 end
      end
      out[i] = { inputs = { a }, attrs = attrs }
   end
   return out
end
ref.any = { samples = zeroes, ref = reduction 'any' }
ref.all = { samples = zeroes, ref = reduction 'all' }

local function extreme(better)
   return function(a, at)
      local d = at.dim + 1
      local size = { unpack(a[1].size) }
      size[d] = 1
      local values, places = nd.new(size, 0), nd.new(size, 0)
      nd.lines(a[1], d, function(line, index)
         local best = 1
         for i = 2, #line do
            if better(line[i], line[best]) then best = i end
         end
         local p = nd.at(size, index)
         values[p], places[p] = line[best], best - 1
      end)
      if not at.keepdim then
         table.remove(size, d)
         values, places = nd.reshape(values, size), nd.reshape(places, size)
      end
      return { values, places }
   end
end
local function along(dtype, ops)
   return {
      { inputs = { ops.sample({ 3, 4, 2 }, dtype, -9, 9) }, attrs = { 1, true } },
      { inputs = { ops.sample({ 3, 4 }, dtype, -9, 9) }, attrs = { 0, false } },
   }
end
ref.amax_dim = { samples = along, ref = extreme(function(x, y) return x > y end) }
ref.amin_dim = { samples = along, ref = extreme(function(x, y) return x < y end) }

return ref
