-- Arrays of the reference: plain Lua, row-major doubles, {size = {...}, n = elements, [1..n]} (no tensor code is used in here).
local nd = {}

--- Elements of an array with these sizes.
function nd.count(size)
   local n = 1
   for d = 1, #size do n = n * size[d] end
   return n
end

--- New array; `fill` is a number or a function of the position (from 1).
function nd.new(size, fill)
   local a = { size = { unpack(size) }, n = nd.count(size) }
   for i = 1, a.n do a[i] = type(fill) == 'function' and fill(i) or fill or 0 end
   return a
end

--- Position (from 1) of an index (from 0) in an array of these sizes.
function nd.at(size, index)
   local p = 0
   for d = 1, #size do p = p * size[d] + index[d] end
   return p + 1
end

--- Index (from 0) of a position (from 1).
function nd.index(size, position)
   local index, p = {}, position - 1
   for d = #size, 1, -1 do
      index[d] = p % size[d]
      p = (p - index[d]) / size[d]
   end
   return index
end

--- Sizes that broadcasting gives; equal element counts of different shapes do not fall back to Torch7's flat rule here.
function nd.broadcastSize(...)
   local out = {}
   for _, a in ipairs { ... } do
      local shift = #a.size - #out
      if shift > 0 then
         local longer = {}
         for d = 1, #a.size do longer[d] = d <= shift and 1 or out[d - shift] end
         out = longer
      end
      for d = 1, #a.size do
         local o = d + #out - #a.size
         if a.size[d] ~= 1 then out[o] = a.size[d] end
      end
   end
   return out
end

--- Element of `a` at an index of a broadcast result.
function nd.broadcastAt(a, index)
   local own, shift = {}, #index - #a.size
   for d = 1, #a.size do own[d] = a.size[d] == 1 and 0 or index[d + shift] end
   return a[nd.at(a.size, own)]
end

--- f over the broadcast elements of one to four arrays.
function nd.map(f, ...)
   local arrays = { ... }
   local size = nd.broadcastSize(...)
   return nd.new(size, function(i)
      local index, values = nd.index(size, i), {}
      for k, a in ipairs(arrays) do values[k] = nd.broadcastAt(a, index) end
      return f(unpack(values))
   end)
end

--- Array whose dimension d is the old dimension order[d] (both from 1).
function nd.permute(a, order)
   local size = {}
   for d = 1, #order do size[d] = a.size[order[d]] end
   return nd.new(size, function(i)
      local index, from = nd.index(size, i), {}
      for d = 1, #order do from[order[d]] = index[d] end
      return a[nd.at(a.size, from)]
   end)
end

--- Part of an array: `length` entries of dimension d (from 1), from `first` (from 0), `step` apart.
function nd.slice(a, d, first, length, step)
   local size = { unpack(a.size) }
   size[d] = length
   return nd.new(size, function(i)
      local index = nd.index(size, i)
      index[d] = first + index[d] * (step or 1)
      return a[nd.at(a.size, index)]
   end)
end

--- Same elements, other sizes.
function nd.reshape(a, size)
   local b = nd.new(size, function(i) return a[i] end)
   assert(b.n == a.n, 'reshape changes the number of elements')
   return b
end

--- Values along dimension d (from 1) for each place in the others: calls f(values, index) with index[d] = 0.
function nd.lines(a, d, f)
   for i = 1, a.n do
      local index = nd.index(a.size, i)
      if index[d] == 0 then
         local line = {}
         for k = 0, a.size[d] - 1 do
            index[d] = k
            line[k + 1] = a[nd.at(a.size, index)]
         end
         index[d] = 0
         f(line, index)
      end
   end
end

return nd
