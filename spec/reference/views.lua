-- Movement ops: views, reshapes, joins, padding (arrays -> arrays).
local nd = require 'support.nd'
local ref = {}

local function plain(ops, dtype, size) return ops.sample(size, dtype, -9, 9) end

-- Array built by looking up each index of the result.
local function from(size, f)
   return nd.new(size, function(i) return f(nd.index(size, i)) end)
end

local function pick(a, index) return a[nd.at(a.size, index)] end
local function copy(list) return { unpack(list) } end

-- Samples of one input of these sizes with each list of attributes.
local function with(size, ...)
   local lists = { ... }
   return function(dtype, ops)
      local out = {}
      for i, attrs in ipairs(lists) do
         local own = attrs.size or size
         out[i] = { inputs = { plain(ops, dtype, own) }, attrs = attrs }
      end
      return out
   end
end

ref.expand = { samples = with({ 3, 1, 2 }, { { 3, 4, 2 } }, { { 5, 3, 2, 2 } }), ref = function(a, at)
   return from(at.sizes, function(index) return nd.broadcastAt(a[1], index) end)
end }

ref.permute = { samples = with({ 2, 3, 4 }, { { 2, 0, 1 } }, { { 0, 2, 1 } }), ref = function(a, at)
   local order = {}
   for d, p in ipairs(at.perm) do order[d] = p + 1 end
   return nd.permute(a[1], order)
end }

ref.slice = { samples = with({ 5, 4 }, { 0, 1, 3, 1 }, { 1, 0, 2, 2 }, { 0, 4, 0, 1 }), ref = function(a, at)
   return nd.slice(a[1], at.dim + 1, at.start, at.len, at.step)
end }

ref.select = { samples = with({ 3, 4 }, { 0, 2 }, { 1, 0 }), ref = function(a, at)
   local size = copy(a[1].size)
   table.remove(size, at.dim + 1)
   return nd.reshape(nd.slice(a[1], at.dim + 1, at.index, 1), size)
end }

ref.squeeze = { samples = with({ 3, 1, 2 }, { 1 }), ref = function(a, at)
   local size = copy(a[1].size)
   table.remove(size, at.dim + 1)
   return nd.reshape(a[1], size)
end }

ref.unsqueeze = { samples = with({ 3, 2 }, { 0 }, { 2 }), ref = function(a, at)
   local size = copy(a[1].size)
   table.insert(size, at.dim + 1, 1)
   return nd.reshape(a[1], size)
end }

ref.view = { layouts = { 'contiguous' }, samples = with({ 3, 4 }, { { 2, 6 } }, { { 12 } }, { { 2, 3, 2 } }), ref = function(a, at)
   return nd.reshape(a[1], at.sizes)
end }

ref.reshape = { samples = with({ 3, 4 }, { { 2, 6 } }, { { 12 } }, { { 2, 3, 2 } }), ref = ref.view.ref }

ref.as_strided = { layouts = { 'contiguous' }, samples = with({ 12 }, { { 3, 2 }, { 4, 1 }, 1 }, { { 4 }, { 3 }, 2 }), ref = function(a, at)
   return from(at.sizes, function(index)
      local p = at.offset
      for d, i in ipairs(index) do p = p + i * at.strides[d] end
      return a[1][p + 1]
   end)
end }

ref.as_strided_grad = { layouts = { 'contiguous' },
   samples = with({ 3, 2 }, { { 12 }, { 1 }, 0, { 3, 2 }, { 4, 1 }, 1 }, { { 3, 4 }, { 4, 1 }, 0, { 3, 2 }, { 2, 1 }, 2 }), ref = function(a, at)
   local memory = {} -- by place in the storage
   for i = 1, a[1].n do
      local p = at.offset
      for d, k in ipairs(nd.index(a[1].size, i)) do p = p + k * at.strides[d] end
      memory[p] = (memory[p] or 0) + a[1][i]
   end
   return from(at.in_sizes, function(index)
      local p = at.in_offset
      for d, k in ipairs(index) do p = p + k * at.in_strides[d] end
      return memory[p] or 0
   end)
end }

ref.unfold = { samples = with({ 7, 2 }, { 0, 3, 2 }, { 0, 2, 1 }), ref = function(a, at)
   local size = copy(a[1].size)
   size[at.dim + 1] = math.floor((size[at.dim + 1] - at.len) / at.step) + 1
   size[#size + 1] = at.len
   return from(size, function(index)
      local k = table.remove(index)
      index[at.dim + 1] = index[at.dim + 1] * at.step + k
      return pick(a[1], index)
   end)
end }

ref.unfold_grad = { samples = with({ 3, 2, 3 }, { { 7, 2 }, 0, 3, 2 }), ref = function(a, at)
   local out = nd.new(at.sizes, 0)
   for i = 1, a[1].n do
      local index = nd.index(a[1].size, i)
      local k = table.remove(index)
      index[at.dim + 1] = index[at.dim + 1] * at.step + k
      local p = nd.at(at.sizes, index)
      out[p] = out[p] + a[1][i]
   end
   return out
end }

local function diagonalSize(size, offset)
   return math.max(0, offset >= 0 and math.min(size[1], size[2] - offset) or math.min(size[1] + offset, size[2]))
end

local function diagonalAt(i, offset)
   return { i + math.max(0, -offset), i + math.max(0, offset) }
end

ref.diagonal = { samples = with({ 3, 4 }, {}, { 1 }, { -1 }), ref = function(a, at)
   return from({ diagonalSize(a[1].size, at.offset) }, function(index) return pick(a[1], diagonalAt(index[1], at.offset)) end)
end }

ref.diagonal_grad = { samples = with({ 3 }, { { 3, 4 }, 0 }, { { 3, 4 }, 1 }, { { 4, 4 }, -1 }), ref = function(a, at)
   local out = nd.new(at.sizes, 0)
   for i = 0, a[1].n - 1 do out[nd.at(at.sizes, diagonalAt(i, at.offset))] = a[1][i + 1] end
   return out
end }

ref.transpose = { samples = with({ 2, 3, 4 }, { 0, 2 }, { 1, 1 }), ref = function(a, at)
   local order = {}
   for d = 1, #a[1].size do order[d] = d end
   order[at.dim0 + 1], order[at.dim1 + 1] = at.dim1 + 1, at.dim0 + 1
   return nd.permute(a[1], order)
end }

ref.flip = { samples = with({ 3, 4 }, { { 0 } }, { { 0, 1 } }), ref = function(a, at)
   return from(a[1].size, function(index)
      for _, d in ipairs(at.dims) do index[d + 1] = a[1].size[d + 1] - 1 - index[d + 1] end
      return pick(a[1], index)
   end)
end }

ref.slice_grad = { samples = with({ 2, 3 }, { { 5, 3 }, 0, 1, 2 }, { { 2, 6 }, 1, 0, 1 }), ref = function(a, at)
   local out = nd.new(at.sizes, 0)
   for i = 1, a[1].n do
      local index = nd.index(a[1].size, i)
      index[at.dim + 1] = at.start + index[at.dim + 1] * at.step
      out[nd.at(at.sizes, index)] = a[1][i]
   end
   return out
end }

local function several(dtype, ops)
   return {
      { inputs = { plain(ops, dtype, { 2, 3 }), plain(ops, dtype, { 1, 3 }), plain(ops, dtype, { 3, 3 }) }, attrs = { 0 } },
      { inputs = { plain(ops, dtype, { 2, 3 }), plain(ops, dtype, { 2, 1 }) }, attrs = { 1 } },
      { inputs = { plain(ops, dtype, { 2, 3 }) }, attrs = { 0 } },
   }
end

ref.cat = { samples = several, ref = function(a, at)
   local d, size = at.dim + 1, copy(a[1].size)
   size[d] = 0
   for _, x in ipairs(a) do size[d] = size[d] + x.size[d] end
   return from(size, function(index)
      for _, x in ipairs(a) do
         if index[d] < x.size[d] then return pick(x, index) end
         index[d] = index[d] - x.size[d]
      end
   end)
end }

ref.stack = { samples = function(dtype, ops)
   local function two() return { plain(ops, dtype, { 2, 3 }), plain(ops, dtype, { 2, 3 }) } end
   return { { inputs = two(), attrs = { 0 } }, { inputs = two(), attrs = { 2 } } }
end, ref = function(a, at)
   local size = copy(a[1].size)
   table.insert(size, at.dim + 1, #a)
   return from(size, function(index) return pick(a[table.remove(index, at.dim + 1) + 1], index) end)
end }

ref.pad = { samples = with({ 2, 3 }, { { 1, 0 }, { 0, 2 }, 0 }, { { 0, 2 }, { 1, 1 }, 4 }, { { 0, -1 }, { 1, 0 }, 0 }), ref = function(a, at)
   local size = {}
   for d, s in ipairs(a[1].size) do size[d] = s + at.before[d] + at.after[d] end
   return from(size, function(index)
      for d in ipairs(index) do
         index[d] = index[d] - at.before[d]
         if index[d] < 0 or index[d] >= a[1].size[d] then return at.value end
      end
      return pick(a[1], index)
   end)
end }

ref['repeat'] = { samples = with({ 2, 3 }, { { 2, 1 } }, { { 1, 3 } }, { { 2, 2, 2 } }), ref = function(a, at)
   local size, shift = {}, #at.times - #a[1].size
   for d, t in ipairs(at.times) do size[d] = t * (d > shift and a[1].size[d - shift] or 1) end
   return from(size, function(index)
      local own = {}
      for d, s in ipairs(a[1].size) do own[d] = index[d + shift] % s end
      return pick(a[1], own)
   end)
end }

ref.roll = { samples = with({ 5, 2 }, { 2, 0 }, { -1, 1 }), ref = function(a, at)
   return from(a[1].size, function(index)
      index[at.dim + 1] = (index[at.dim + 1] - at.shift) % a[1].size[at.dim + 1]
      return pick(a[1], index)
   end)
end }

local function triangle(keep)
   return function(a, at)
      local rank = #a[1].size
      return from(a[1].size, function(index)
         return keep(index[rank] - index[rank - 1], at.k) and pick(a[1], index) or 0
      end)
   end
end
local triangles = with({ 2, 3, 4 }, {}, { 1 }, { -1 })
ref.tril = { samples = triangles, ref = triangle(function(d, k) return d <= k end) }
ref.triu = { samples = triangles, ref = triangle(function(d, k) return d >= k end) }

-- creation: the dtype is an attribute
local function made(...)
   local lists = { ... }
   return function(dtype)
      local out = {}
      for i, attrs in ipairs(lists) do
         local own = copy(attrs)
         own[#own + 1] = dtype
         out[i] = { inputs = {}, attrs = own }
      end
      return out
   end
end
local once = { 'contiguous' }
ref.full = { layouts = once, samples = made({ { 2, 3 }, 3 }, { { 0, 2 }, 1 }, { {}, 2 }), ref = function(_, at) return nd.new(at.sizes, at.value) end }
ref.zeros = { layouts = once, samples = made({ { 2, 3 } }), ref = function(_, at) return nd.new(at.sizes, 0) end }
ref.ones = { layouts = once, samples = made({ { 2, 3 } }), ref = function(_, at) return nd.new(at.sizes, 1) end }
ref.iota = { layouts = once, samples = made({ 5 }, { 0 }), ref = function(_, at) return nd.new({ at.n }, function(i) return i - 1 end) end }
ref.arange = { layouts = once, samples = made({ 1, 5, 2 }, { 3, 4, -0.5 }), ref = function(_, at)
   return nd.new({ at.n }, function(i) return at.start + (i - 1) * at.step end)
end }

return ref
