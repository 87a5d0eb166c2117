-- Reductions: all values of a window -> number, from the definition.
local nd = require 'support.nd'
local ref = { needsElements = {} }

function ref.sum(v)
   local s = 0
   for i = 1, #v do s = s + v[i] end
   return s
end

function ref.prod(v)
   local p = 1
   for i = 1, #v do p = p * v[i] end
   return p
end

function ref.amax(v)
   local m = -math.huge
   for i = 1, #v do
      if v[i] ~= v[i] then return v[i] end
      m = math.max(m, v[i])
   end
   return m
end

function ref.amin(v)
   local m = math.huge
   for i = 1, #v do
      if v[i] ~= v[i] then return v[i] end
      m = math.min(m, v[i])
   end
   return m
end

function ref.argmax(v)
   local best = 1
   for i = 2, #v do
      if v[i] > v[best] then best = i end
   end
   return best - 1
end

function ref.argmin(v)
   local best = 1
   for i = 2, #v do
      if v[i] < v[best] then best = i end
   end
   return best - 1
end

for name in ('amax amin argmax argmin'):gmatch '%a+' do ref.needsElements[name] = true end

local function inside(list, d)
   for _, v in ipairs(list) do
      if v == d then return true end
   end
   return false
end

--- Folds dims (from 0, none: all) of an array with the reduction `name`.
function ref.fold(name, a, dims, keepdim, case)
   local all, rest, kept = #dims == 0, {}, {}
   for d = 1, #a.size do
      if all or inside(dims, d - 1) then
         if keepdim then kept[#kept + 1] = 1 end
      else
         rest[#rest + 1] = d
         kept[#kept + 1] = a.size[d]
      end
   end
   local size, windows = {}, {}
   for i, d in ipairs(rest) do size[i] = a.size[d] end
   for p = 1, nd.count(size) do windows[p] = {} end
   for p = 1, a.n do
      local index, own = nd.index(a.size, p), {}
      for i, d in ipairs(rest) do own[i] = index[d] end
      local w = windows[nd.at(size, own)]
      w[#w + 1] = a[p]
   end
   return nd.new(kept, function(p) return ref[name](windows[p], case) end)
end

return ref
