-- Indexing, sorting, scans; positions count from 0 (arrays -> arrays).
local nd = require 'support.nd'
local ref = {}

local function value(ops, dtype, size) return ops.sample(size, dtype, -9, 9) end

local function places(ops, size, most, distinct)
   local used = {}
   local a = nd.new(size, function()
      local p
      repeat p = math.floor(ops.uniform() * most) until not distinct or not used[p]
      used[p] = true
      return p
   end)
   a.dtype = 'Long'
   return a
end

local function copy(a) return nd.new(a.size, function(i) return a[i] end) end

-- Position in `a` of an index whose entry `dim` (from 0) is replaced.
local function moved(a, index, dim, to)
   local own = { unpack(index) }
   own[dim + 1] = to
   return nd.at(a.size, own)
end

ref.gather = { samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 4, 3 }), places(ops, { 2, 3 }, 4) }, attrs = { 0 } },
      { inputs = { value(ops, dtype, { 2, 5 }), places(ops, { 2, 3 }, 5) }, attrs = { 1 } } }
end, ref = function(a, at)
   return nd.new(a[2].size, function(i) return a[1][moved(a[1], nd.index(a[2].size, i), at.dim, a[2][i])] end)
end }

local function scattered(distinct)
   return function(dtype, ops)
      local idx = places(ops, { 2, 3 }, 5)
      if distinct then
         for r = 0, 1 do
            for c = 0, 2 do idx[r * 3 + c + 1] = (c * 2 + r) % 5 end
         end
      end
      return { { inputs = { value(ops, dtype, { 2, 5 }), idx, value(ops, dtype, { 2, 3 }) }, attrs = { 1 } } }
   end
end
local function scatter(f)
   return function(a, at)
      local r = copy(a[1])
      for i = 1, a[2].n do
         local p = moved(r, nd.index(a[2].size, i), at.dim, a[2][i])
         r[p] = f(r[p], a[3][i])
      end
      return r
   end
end
ref.scatter = { samples = scattered(true), ref = scatter(function(_, v) return v end) }
ref.scatter_add = { samples = scattered(false), ref = scatter(function(x, v) return x + v end) }

ref.index_select = { samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 4, 3 }), places(ops, { 5 }, 4) }, attrs = { 0 } },
      { inputs = { value(ops, dtype, { 2, 4, 2 }), places(ops, { 3 }, 4) }, attrs = { 1 } },
      { inputs = { value(ops, dtype, { 4 }), places(ops, { 2 }, 4) }, attrs = { 0 } } }
end, ref = function(a, at)
   local size = { unpack(a[1].size) }
   size[at.dim + 1] = a[2].n
   return nd.new(size, function(i)
      local index = nd.index(size, i)
      return a[1][moved(a[1], index, at.dim, a[2][index[at.dim + 1] + 1])]
   end)
end }

local function slices(distinct)
   return function(dtype, ops)
      return { { inputs = { value(ops, dtype, { 5, 2 }), places(ops, { 3 }, 5, distinct), value(ops, dtype, { 3, 2 }) }, attrs = { 0 } },
         { inputs = { value(ops, dtype, { 2, 5 }), places(ops, { 3 }, 5, distinct), value(ops, dtype, { 2, 3 }) }, attrs = { 1 } } }
   end
end
local function writeSlices(f)
   return function(a, at)
      local r = copy(a[1])
      for i = 1, a[3].n do
         local index = nd.index(a[3].size, i)
         local p = moved(r, index, at.dim, a[2][index[at.dim + 1] + 1])
         r[p] = f(r[p], a[3][i])
      end
      return r
   end
end
ref.index_add = { samples = slices(false), ref = writeSlices(function(x, v) return x + v end) }
ref.index_copy = { samples = slices(true), ref = writeSlices(function(_, v) return v end) }

ref.index_fill = { samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 5, 2 }), places(ops, { 3 }, 5), nd.new({}, 3) }, attrs = { 0 } } }
end, ref = function(a, at)
   local chosen = {}
   for i = 1, a[2].n do chosen[a[2][i]] = true end
   return nd.new(a[1].size, function(i) return chosen[nd.index(a[1].size, i)[at.dim + 1]] and a[3][1] or a[1][i] end)
end }

local function mask(ops, size)
   local a = nd.new(size, function(i) return (i == 2 or ops.uniform() < 0.5) and 1 or 0 end)
   a.dtype = 'Byte'
   return a
end

ref.masked_select = { dynamic = true, samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 3, 4 }), mask(ops, { 3, 4 }) } } }
end, ref = function(a)
   local list = {}
   for i = 1, a[1].n do
      if a[2][i] ~= 0 then list[#list + 1] = a[1][i] end
   end
   return nd.new({ #list }, function(i) return list[i] end)
end }

ref.masked_scatter = { samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 3, 4 }), mask(ops, { 3, 4 }), value(ops, dtype, { 12 }) } } }
end, ref = function(a)
   local k = 0
   return nd.new(a[1].size, function(i)
      if a[2][i] == 0 then return a[1][i] end
      k = k + 1
      return a[3][k]
   end)
end }

ref.masked_fill = { samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 3, 4 }), mask(ops, { 3, 4 }), nd.new({}, 5) } } }
end, ref = function(a)
   return nd.new(a[1].size, function(i) return a[2][i] ~= 0 and a[3][1] or a[1][i] end)
end }

ref.nonzero = { dynamic = true, samples = function(dtype, ops)
   local a = ops.sample({ 3, 4 }, dtype, 0, 2)
   for i = 1, 12, 3 do a[i] = 0 end
   return { { inputs = { a } } }
end, ref = function(a)
   local list, rank = {}, #a[1].size
   for i = 1, a[1].n do
      if a[1][i] ~= 0 then
         for _, v in ipairs(nd.index(a[1].size, i)) do list[#list + 1] = v end
      end
   end
   return nd.new({ #list / rank, rank }, function(i) return list[i] end)
end }

ref.take = { samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 3, 4 }), places(ops, { 2, 2 }, 12) } } }
end, ref = function(a)
   return nd.new(a[2].size, function(i) return a[1][a[2][i] + 1] end)
end }

ref.put_add = { samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 3, 4 }), places(ops, { 5 }, 12), value(ops, dtype, { 5 }) } } }
end, ref = function(a)
   local r = copy(a[1])
   for i = 1, a[2].n do r[a[2][i] + 1] = r[a[2][i] + 1] + a[3][i] end
   return r
end }

ref.embedding = { samples = function(dtype, ops)
   return { { inputs = { value(ops, dtype, { 4, 3 }), places(ops, { 5 }, 4) } }, { inputs = { value(ops, dtype, { 4, 3 }), places(ops, { 2, 2 }, 4) } } }
end, ref = function(a)
   local size = { unpack(a[2].size) }
   size[#size + 1] = a[1].size[2]
   return nd.new(size, function(i)
      local column = (i - 1) % a[1].size[2]
      return a[1][a[2][(i - 1 - column) / a[1].size[2] + 1] * a[1].size[2] + column + 1]
   end)
end }

-- Values along dim replaced by count values and positions that f gives for each line.
local function lines(count, f)
   return function(a, at)
      local d, size = at.dim + 1, { unpack(a[1].size) }
      size[d] = type(count) == 'string' and at[count] or count or size[d]
      local values, positions = nd.new(size, 0), nd.new(size, 0)
      nd.lines(a[1], d, function(line, index)
         for k, pair in ipairs(f(line, at)) do
            index[d] = k - 1
            local p = nd.at(size, index)
            values[p], positions[p] = pair[1], pair[2]
         end
         index[d] = 0
      end)
      return { values, positions }
   end
end

local function ranked(line, descending)
   local list = {}
   for i, v in ipairs(line) do list[i] = { v, i - 1 } end
   table.sort(list, function(x, y)
      if x[1] ~= y[1] then return descending and x[1] > y[1] or not descending and x[1] < y[1] end
      return x[2] < y[2]
   end)
   return list
end

-- Distinct values: positions of equal ones are the business of each op, and tested in its own spec.
local function distinct(ops, dtype, size)
   local lowest = dtype == 'Byte' and 1 or -7
   local order, n = {}, nd.count(size)
   for i = 1, n do order[i] = i end
   for i = n, 2, -1 do
      local k = 1 + math.floor(ops.uniform() * i)
      order[i], order[k] = order[k], order[i]
   end
   return nd.new(size, function(i) return order[i] * 2 + lowest end)
end

local function orders(...)
   local lists = { ... }
   return function(dtype, ops)
      local out = {}
      for i, attrs in ipairs(lists) do out[i] = { inputs = { distinct(ops, dtype, { 3, 5 }) }, attrs = attrs } end
      return out
   end
end
ref.sort = { samples = orders({ 1, false }, { 0, true }), ref = lines(nil, function(line, at) return ranked(line, at.descending) end) }
ref.topk = { samples = orders({ 2, 1, false, true }, { 3, 1, true, true }), ref = lines('k', function(line, at)
   local list = ranked(line, at.largest)
   return { unpack(list, 1, at.k) }
end) }
ref.kthvalue = { samples = orders({ 1, 1 }, { 0, 0 }), ref = lines(1, function(line, at) return { ranked(line)[at.k + 1] } end) }
ref.mode = { samples = function(dtype)
   return { { inputs = { nd.new({ 2, 6 }, function(i) return ({ 3, 1, 3, 2, 1, 3, 4, 2, 2, 4, 4, 0 })[i] end) }, attrs = { 1 }, dtype = dtype } }
end, ref = lines(1, function(line)
   local best, most
   for _, v in ipairs(line) do
      local n, last = 0, nil
      for k, u in ipairs(line) do
         if u == v then n, last = n + 1, k - 1 end
      end
      if not best or n > most or n == most and v < best[1] then best, most = { v, last }, n end
   end
   return { best }
end) }

local function scan(f, start)
   return function(a, at)
      local out, d = nd.new(a[1].size, 0), at.dim + 1
      nd.lines(a[1], d, function(line, index)
         local s = start
         for k, v in ipairs(line) do
            s = f(s, v)
            index[d] = k - 1
            out[nd.at(out.size, index)] = s
         end
         index[d] = 0
      end)
      return out
   end
end
local function scanned(lo, hi)
   return function(dtype, ops)
      return { { inputs = { ops.sample({ 3, 4 }, dtype, lo, hi) }, attrs = { 1 } }, { inputs = { ops.sample({ 3, 4 }, dtype, lo, hi) }, attrs = { 0 } } }
   end
end
ref.cumsum = { samples = scanned(-3, 3), ref = scan(function(s, v) return s + v end, 0), tolerance = 30 }
ref.cumprod = { samples = scanned(0.5, 2), ref = scan(function(s, v) return s * v end, 1), tolerance = 30 }

return ref
