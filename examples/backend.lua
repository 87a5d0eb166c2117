-- A complete toy backend for torch.compile in plain Lua: the functional primitive graph becomes a list of closures over flat tables.
-- luajit examples/backend.lua
--
-- What a backend sees: nodes in order (g:passes():walk()), each pure, with a geometry inside a storage. Views only have another geometry.
-- Elementwise inputs agree in shape and dtype with casts and expansions as nodes of their own. What this one does not know, it refuses;
-- torch.compile then runs the function eagerly and says so.
local standalone = not package.loaded['relume.core']
if standalone then dofile((arg[0]:match '^(.*)examples/' or '') .. 'examples/paths.lua') end
require 'torch'
local C = require 'relume.core'
local floor, ceil, abs, huge, nan = math.floor, math.ceil, math.abs, math.huge, 0 / 0

-- Scalars ----------------------------------------------------------------------------------------------------------------------

local ranges = { Byte = { 0, 2 ^ 8 }, Char = { -2 ^ 7, 2 ^ 8 }, Short = { -2 ^ 15, 2 ^ 16 }, Int = { -2 ^ 31, 2 ^ 32 }, Long = { -2 ^ 63, 2 ^ 64 } }
local box = torch.FloatTensor(1):storage()

local function trunc(x) return x < 0 and ceil(x) or floor(x) end
local function isnan(x) return x ~= x end
local function bool(x) return x and 1 or 0 end

-- store[dtype]: what a number becomes in memory. Integers wrap, Float rounds; values are exact up to 2^53.
local store = { Double = function(x) return x end }
function store.Float(x)
   box[1] = x
   return box[1]
end
for dtype, r in pairs(ranges) do
   store[dtype] = function(x)
      if abs(x) < 2 ^ 53 and dtype == 'Long' then return trunc(x) end
      if x ~= x or abs(x) >= 2 ^ 63 then return dtype == 'Long' and -2 ^ 63 or 0 end
      return (trunc(x) - r[1]) % r[2] + r[1]
   end
end

local function erf(x) -- Abramowitz and Stegun 7.1.26 lacks digits: the series, and the continued fraction far out
   local a = abs(x)
   if isnan(x) then return x end
   if a > 6 then return x < 0 and -1 or 1 end
   local term, sum, n = a, a, 0
   while abs(term) > 1e-17 * abs(sum) do
      n = n + 1
      term = -term * a * a / n
      sum = sum + term / (2 * n + 1)
   end
   return (x < 0 and -1 or 1) * 2 / math.sqrt(math.pi) * sum
end

local function fmod(x, y)
   return y == 0 and nan or abs(y) == huge and abs(x) < huge and x or math.fmod(x, y)
end

local one = {
   neg = function(x) return -x end, abs = abs, exp = math.exp, sqrt = math.sqrt, sin = math.sin, cos = math.cos, tan = math.tan,
   asin = math.asin, acos = math.acos, atan = math.atan, sinh = math.sinh, cosh = math.cosh, tanh = math.tanh, floor = floor, ceil = ceil,
   trunc = trunc, erf = erf,
   log = function(x) return math.log(x) end,
   sign = function(x) return x > 0 and 1 or x < 0 and -1 or 0 end,
   round = function(x) return x < 0 and ceil(x - 0.5) or floor(x + 0.5) end,
   rsqrt = function(x) return 1 / math.sqrt(x) end,
   sigmoid = function(x) return 1 / (1 + math.exp(-x)) end,
   erfc = function(x) return 1 - erf(x) end,
   expm1 = function(x) return abs(x) < 1e-5 and x + x * x / 2 or math.exp(x) - 1 end,
   log1p = function(x) return abs(x) < 1e-5 and x - x * x / 2 or math.log(1 + x) end,
   isnan = function(x) return bool(isnan(x)) end,
}

local two = {
   add = function(x, y) return x + y end, sub = function(x, y) return x - y end, mul = function(x, y) return x * y end,
   div = function(x, y) return x / y end, pow = function(x, y) return x ^ y end, atan2 = math.atan2, fmod = fmod,
   remainder = function(x, y) return y == 0 and nan or x - y * floor(x / y) end,
   maximum = function(x, y) return (isnan(x) or x > y) and x or y end,
   minimum = function(x, y) return (isnan(x) or x < y) and x or y end,
   lt = function(x, y) return bool(x < y) end, le = function(x, y) return bool(x <= y) end, gt = function(x, y) return bool(x > y) end,
   ge = function(x, y) return bool(x >= y) end, eq = function(x, y) return bool(x == y) end, ne = function(x, y) return bool(x ~= y) end,
   logical_and = function(x, y) return bool(x ~= 0 and y ~= 0) end, logical_or = function(x, y) return bool(x ~= 0 or y ~= 0) end,
}

-- Integer division truncates; by 0 it gives 0.
local integer = {
   div = function(x, y) return y == 0 and 0 or trunc(x / y) end,
   fmod = function(x, y) return y == 0 and 0 or math.fmod(x, y) end,
   remainder = function(x, y) return y == 0 and 0 or x - y * floor(x / y) end,
}

local folds = { -- start, step
   sum = { 0, two.add }, prod = { 1, two.mul }, amax = { -huge, two.maximum }, amin = { huge, two.minimum },
}

-- Places -----------------------------------------------------------------------------------------------------------------------

local function count(sizes)
   local n = 1
   for _, s in ipairs(sizes) do n = n * s end
   return n
end

-- Places of all elements of a geometry in row-major order.
local function places(sizes, strides, offset)
   local list, n = { offset }, 1
   for d = 1, #sizes do
      local more = {}
      for i = 1, n do
         for k = 0, sizes[d] - 1 do more[#more + 1] = list[i] + k * strides[d] end
      end
      list, n = more, #more
   end
   return list
end

local function dense(sizes)
   local strides, s = {}, 1
   for d = #sizes, 1, -1 do strides[d], s = s, s * sizes[d] end
   return strides
end

-- Strides with which dimension dim (from 1) stays where it is.
local function without(strides, dim)
   local copy = { unpack(strides) }
   copy[dim] = 0
   return copy
end

-- Nodes ------------------------------------------------------------------------------------------------------------------------
-- Each builder gives a function of the state; state[storage] is a flat table, its places counting from 0.

local build = {}

local function at(node) return places(node.sizes, node.strides, node.offset) end

local function elementwise(node, from, f)
   local put, out = store[node.dtype], at(node)
   local a, b, c = from[1], from[2], from[3]
   local pa, pb, pc = at(a), b and at(b), c and at(c)
   return function(state)
      local r, x, y, z = {}, state[a.storage], b and state[b.storage], c and state[c.storage]
      for i = 1, #out do r[out[i]] = put(f(x[pa[i]], y and y[pb[i]], z and z[pc[i]])) end
      state[node.storage] = r
   end
end

local function same(x) return x end
build.cast = function(node, from) return elementwise(node, from, same) end
build.cast_to, build.reshape = build.cast, build.cast -- the graph's own cast, which may copy; a copy in another shape
build.where = function(node, from) return elementwise(node, from, function(m, x, y) return m ~= 0 and x or y end) end

function build.full(node)
   local out, v = at(node), store[node.dtype](node.attrs.value)
   return function(state)
      local r = {}
      for i = 1, #out do r[out[i]] = v end
      state[node.storage] = r
   end
end

function build.const(node)
   return function(state) state[node.storage] = { [node.offset] = node.value } end
end

function build.iota(node)
   return function(state)
      local r = {}
      for i = 0, node.sizes[1] - 1 do r[i] = i end
      state[node.storage] = r
   end
end

local function readStorage(tensor)
   local r, s = {}, tensor:storage()
   for i = 1, s and s:size() or 0 do r[i - 1] = s[i] end
   return r
end

function build.tensor(node)
   return function(state) state[node.storage] = readStorage(node.tensor) end
end

-- For each place of the operand, the place of its result: reduced dimensions have stride 0.
local function resultPlaces(node, x)
   local reduced, strides, kept = {}, {}, {}
   for _, d in ipairs(node.attrs.dims) do reduced[d + 1] = true end
   if #node.attrs.dims == 0 then
      for d = 1, #x.sizes do reduced[d] = true end
   end
   for d = 1, #x.sizes do
      if not reduced[d] then kept[#kept + 1] = x.sizes[d] end
   end
   local st, k = dense(kept), 0
   for d = 1, #x.sizes do
      if not reduced[d] then k = k + 1 end
      strides[d] = reduced[d] and 0 or st[k]
   end
   return places(x.sizes, strides, 0), reduced
end

for name, fold in pairs(folds) do
   build[name] = function(node, from)
      local x, put, n = from[1], store[node.dtype], count(node.sizes)
      local px, pr = at(x), (resultPlaces(node, x))
      return function(state)
         local r, v = {}, state[x.storage]
         for i = 0, n - 1 do r[i] = fold[1] end
         for i = 1, #px do r[pr[i]] = fold[2](r[pr[i]], v[px[i]]) end
         for i = 0, n - 1 do r[i] = put(r[i]) end
         state[node.storage] = r
      end
   end
end

-- argmax and argmin: the first of the best; NaN is best.
for name, better in pairs { argmax = two.gt, argmin = two.lt } do
   build[name] = function(node, from)
      local x = from[1]
      local px, pr, reduced = at(x), resultPlaces(node, x)
      local inner, s = {}, 1
      for d = #x.sizes, 1, -1 do
         inner[d] = reduced[d] and s or 0
         if reduced[d] then s = s * x.sizes[d] end
      end
      local index = places(x.sizes, inner, 0)
      return function(state)
         local r, best, v = {}, {}, state[x.storage]
         for i = 1, #px do
            local e, k = v[px[i]], pr[i]
            local b = best[k]
            if b == nil or not isnan(b) and (isnan(e) or better(e, b) == 1) then best[k], r[k] = e, index[i] end
         end
         state[node.storage] = r
      end
   end
end

function build.matmul(node, from)
   local x, y, rank = from[1], from[2], #node.sizes
   local m, n, k = node.sizes[rank - 1], node.sizes[rank], x.sizes[rank]
   local put = store[node.dtype]
   return function(state)
      local r, a, b, at0 = {}, state[x.storage], state[y.storage], 0
      for batch = 0, (rank == 3 and node.sizes[1] or 1) - 1 do
         local ox, oy = x.offset, y.offset
         if rank == 3 then ox, oy = ox + batch * x.strides[1], oy + batch * y.strides[1] end
         for i = 0, m - 1 do
            for j = 0, n - 1 do
               local sum = 0
               for l = 0, k - 1 do
                  sum = sum + a[ox + i * x.strides[rank - 1] + l * x.strides[rank]] * b[oy + l * y.strides[rank - 1] + j * y.strides[rank]]
               end
               r[at0], at0 = put(sum), at0 + 1
            end
         end
      end
      state[node.storage] = r
   end
end

local function indexed(node, x, position)
   local dim = node.attrs.dim + 1
   local base = places(node.sizes, without(x.strides, dim), x.offset)
   return function(state)
      local r, v = {}, state[x.storage]
      for i = 1, #base do
         local p = position(state, i)
         assert(p >= 0 and p < x.sizes[dim], 'index out of range')
         r[i - 1] = v[base[i] + p * x.strides[dim]]
      end
      state[node.storage] = r
   end
end

function build.gather(node, from)
   local idx = from[2]
   local pi = at(idx)
   return indexed(node, from[1], function(state, i) return state[idx.storage][pi[i]] end)
end

function build.index_select(node, from)
   local idx, along = from[2], {}
   for d = 1, #node.sizes do along[d] = d == node.attrs.dim + 1 and idx.strides[1] or 0 end
   local pi = places(node.sizes, along, idx.offset)
   return indexed(node, from[1], function(state, i) return state[idx.storage][pi[i]] end)
end

function build.cat(node, from)
   local dim, strides, start = node.attrs.dim + 1, dense(node.sizes), 0
   local parts = {}
   for i, x in ipairs(from) do
      parts[i] = { x, at(x), places(x.sizes, strides, start * strides[dim]) }
      start = start + x.sizes[dim]
   end
   return function(state)
      local r = {}
      for _, part in ipairs(parts) do
         local v = state[part[1].storage]
         for i = 1, #part[2] do r[part[3][i]] = v[part[2][i]] end
      end
      state[node.storage] = r
   end
end

-- The graph's functional write: the first operand with a window replaced by the second.
function build.scatter_window(node, from)
   local base, src, a = from[1], from[2], node.attrs
   local pb, ps, pw, out = at(base), at(src), places(a.sizes, a.strides, a.offset), at(node)
   return function(state)
      local r, x, y = {}, state[base.storage], state[src.storage]
      for i = 1, #pb do r[out[i]] = x[pb[i]] end
      for i = 1, #ps do r[pw[i]] = y[ps[i]] end
      state[node.storage] = r
   end
end

-- Graph ------------------------------------------------------------------------------------------------------------------------

local function compileNode(node, nodes)
   local from = {}
   for k, ref in ipairs(node.inputs) do from[k] = ref and nodes[ref + 1] or nil end
   if not store[node.dtype] then error('dtype ' .. node.dtype) end
   local f = one[node.op] or ranges[from[1] and from[1].dtype] and integer[node.op] or two[node.op]
   if f then return elementwise(node, from, f) end
   if from[1] and from[1].storage == node.storage then return nil end -- a view
   local make = build[node.op] or error('op ' .. node.op)
   return make(node, from)
end

-- The node's value as a new tensor.
local function tensorOf(node, values)
   local shape = #node.sizes == 0 and { 1 } or node.sizes
   local t = torch[node.dtype .. 'Tensor']():resize(torch.LongStorage(shape))
   local s, p = t:storage(), at(node)
   for i = 1, #p do s[i] = values[p[i]] end
   return #node.sizes == 0 and C.op.select(t, 0, 0) or t
end

--- The backend: a function of the graph's inputs (tensors, then numbers) that returns its outputs.
local function backend(graph)
   local g = graph:passes()
   local nodes, ends = g:walk()
   local steps, inputAt = {}, {}
   for i, ref in ipairs(ends.inputs) do inputAt[nodes[ref + 1].storage] = i end
   for _, node in ipairs(nodes) do
      if node.op ~= 'input' and node.op ~= 'number' then steps[#steps + 1] = compileNode(node, nodes) end
   end
   return function(...)
      local args, state, out = { ... }, {}, {}
      for i, ref in ipairs(ends.inputs) do state[nodes[ref + 1].storage] = readStorage(args[i]) end
      for i, ref in ipairs(ends.numbers) do state[nodes[ref + 1].storage] = { [0] = args[#ends.inputs + i] } end
      for _, step in ipairs(steps) do step(state) end
      for i, ref in ipairs(ends.outputs) do
         local node = nodes[ref + 1]
         local k = inputAt[node.storage]
         out[i] = k and args[k].new():set(args[k]:storage(), node.offset + 1, torch.LongStorage(node.sizes), torch.LongStorage(node.strides))
            or tensorOf(node, state[node.storage])
      end
      for _, u in ipairs(ends.updates) do -- after everything: values are those before any update
         local input, value = nodes[u.input + 1], nodes[u.value + 1]
         local s, pi, pv = args[inputAt[input.storage]]:storage(), at(input), at(value)
         for i = 1, #pi do s[pi[i] + 1] = state[value.storage][pv[i]] end
      end
      return unpack(out, 1, #ends.outputs)
   end
end

if standalone then
   local f = torch.compile(function(x, w)
      local y = torch.tanh(torch.mm(x, w)):add(1)
      return torch.cdiv(y, y:sum(2):expandAs(y))
   end, { backend = backend })
   torch.manualSeed(1)
   print(f(torch.randn(3, 4), torch.randn(4, 2)))
end
return backend
