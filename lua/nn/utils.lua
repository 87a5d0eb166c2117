-- nn.utils: recursion over nested tables of tensors, flat storage for parameters, deep copies.

local utils = {}

local function isModule(x)
   return torch.isTypeOf(x, 'nn.Module') or torch.isTypeOf(x, 'nn.Criterion')
end

-- The converted storage of t, made once per storage and cache.
local function convertStorage(t, type, cache)
   local storage = t:storage()
   local key = torch.pointer(storage)
   local converted = cache[key]
   if not converted then
      local Storage = torch.getconstructortable((type:gsub('Tensor$', 'Storage')))
      converted = Storage(storage:size()):copy(storage)
      cache[key] = converted
      cache[converted] = storage -- keeps the pointer in use
   end
   return converted
end

local function convertTensor(t, type, cache)
   if torch.typename(t) == type then return t end
   local converted = cache[t]
   if converted then return converted end
   local Tensor = torch.getconstructortable(type)
   if not Tensor then error('[type] tensor type; got ' .. tostring(type) .. ", need a name such as 'torch.FloatTensor'", 0) end
   converted = Tensor()
   if t:nElement() > 0 or t:storage() then
      converted:set(convertStorage(t, type, cache), t:storageOffset(), t:size(), t:stride())
   end
   if t:requiresGrad() and t:isLeaf() then converted:requiresGrad(true) end
   cache[t] = converted
   return converted
end

--- Converts tensors in param (tensor, module, criterion or nested table) to a tensor type, sharing kept.
function utils.recursiveType(param, type_, tensorCache)
   tensorCache = tensorCache or {}
   if torch.isTensor(param) then return convertTensor(param, type_, tensorCache) end
   if type(param) ~= 'table' then return param end
   if isModule(param) then
      param:type(type_, tensorCache)
   elseif not tensorCache[param] then
      tensorCache[param] = true
      for k, v in pairs(param) do param[k] = utils.recursiveType(v, type_, tensorCache) end
      tensorCache[param] = nil
   end
   return param
end

--- Resizes t1 like t2, tables included; returns both.
function utils.recursiveResizeAs(t1, t2)
   if type(t2) == 'table' then
      t1 = type(t1) == 'table' and t1 or {t1}
      for k in pairs(t2) do t1[k], t2[k] = utils.recursiveResizeAs(t1[k], t2[k]) end
      for k in pairs(t1) do
         if not t2[k] then t1[k] = nil end
      end
   elseif torch.isTensor(t2) then
      t1 = torch.isTensor(t1) and t1 or t2.new()
      t1:resize(t2:size())
   else
      error('expecting nested tensors or tables. Got ' .. type(t1) .. ' and ' .. type(t2) .. ' instead')
   end
   return t1, t2
end

--- Fills every tensor of t2 with val.
function utils.recursiveFill(t2, val)
   if type(t2) == 'table' then
      for k in pairs(t2) do t2[k] = utils.recursiveFill(t2[k], val) end
   elseif torch.isTensor(t2) then
      t2:fill(val)
   else
      error('expecting tensor or table thereof. Got ' .. type(t2) .. ' instead')
   end
   return t2
end

--- t1 += val * t2, or t1 += t2; tables included.
function utils.recursiveAdd(t1, val, t2)
   if not t2 then val, t2 = 1, val end
   if type(t2) == 'table' then
      t1 = type(t1) == 'table' and t1 or {t1}
      for k in pairs(t2) do t1[k], t2[k] = utils.recursiveAdd(t1[k], val, t2[k]) end
   elseif torch.isTensor(t1) and torch.isTensor(t2) then
      t1:add(val, t2)
   else
      error('expecting nested tensors or tables. Got ' .. type(t1) .. ' and ' .. type(t2) .. ' instead')
   end
   return t1, t2
end

--- Copies t2 into t1, which is resized; tables included.
function utils.recursiveCopy(t1, t2, async)
   if type(t2) == 'table' then
      t1 = type(t1) == 'table' and t1 or {t1}
      for k in pairs(t2) do t1[k], t2[k] = utils.recursiveCopy(t1[k], t2[k], async) end
   elseif torch.isTensor(t2) then
      t1 = torch.isTensor(t1) and t1 or t2.new()
      t1:resize(t2:size()):copy(t2)
   else
      error('expecting nested tensors or tables. Got ' .. type(t1) .. ' and ' .. type(t2) .. ' instead')
   end
   return t1, t2
end

--- addSingletonDimension([res,] tensor [, dim = 1]): tensor with a dimension of size 1 put in at dim, sharing its memory.
function utils.addSingletonDimension(tensor, dim, ...)
   local res
   if torch.isTensor(dim) then res, tensor, dim = tensor, dim, ... end
   dim = dim or 1
   if dim < 1 or dim > tensor:dim() + 1 then
      error(('[addSingletonDimension] dimension; got %d, need 1 to %d'):format(dim, tensor:dim() + 1), 2)
   end
   if not res then return tensor:unsqueeze(dim) end
   local size, stride = tensor:size():totable(), tensor:stride():totable()
   table.insert(size, dim, 1)
   table.insert(stride, dim, 1)
   return res:set(tensor:storage(), tensor:storageOffset(), torch.LongStorage(size), torch.LongStorage(stride))
end

--- A view of input with the sizes given, through a contiguous copy where needed.
function utils.contiguousView(output, input, ...)
   output = output or input.new()
   if input:isContiguous() then
      output:view(input, ...)
   else
      output:resize(input:size()):copy(input)
      output:view(output, ...)
   end
   return output
end

--- Empties the named fields: tensors lose their memory, tables become empty, the rest nil.
function utils.clear(self, ...)
   local names = {...}
   if type(names[1]) == 'table' then names = names[1] end
   for _, f in ipairs(names) do
      if torch.isTensor(self[f]) then
         self[f]:set()
      elseif type(self[f]) == 'table' then
         self[f] = {}
      else
         self[f] = nil
      end
   end
   return self
end

--- A deep copy of an object, through serialisation as .t7 would keep it.
function utils.copyObject(object)
   local file = torch.MemoryFile('rw'):binary()
   file:writeObject(object)
   file:seek(1)
   local copy = file:readObject()
   file:close()
   return copy
end

-- Flat parameters ------------------------------------------------------------------------------------------------------
-- Each storage's used intervals are laid out one after another in the order of first use; overlapping ones are merged, so
-- tensors that shared elements share them in the flat storage. A tensor with holes gets memory of its own first.

-- Elements from the first to the last that t reaches.
local function span(t)
   local n = 1
   for d = 1, t:dim() do n = n + (t:size(d) - 1) * t:stride(d) end
   return n
end

-- Gives tensors with holes (or repeats) compact memory; the same view given twice stays shared.
local function compact(parameters)
   local done = {}
   for _, t in ipairs(parameters) do
      if t:nElement() > 0 and span(t) ~= t:nElement() then
         local key = torch.pointer(t:storage()) .. ':' .. t:storageOffset() .. ':' .. table.concat(t:size():totable(), 'x')
            .. ':' .. table.concat(t:stride():totable(), 'x')
         done[key] = done[key] or t:clone()
         t:set(done[key])
      end
   end
end

-- Merged intervals {first, last, storage} in order of first use, and for each tensor its interval.
local function intervals(parameters)
   local byStorage, order = {}, {}
   for i, t in ipairs(parameters) do
      if t:nElement() > 0 then
         local storage = t:storage()
         local key = torch.pointer(storage)
         local list = byStorage[key] or {}
         byStorage[key] = list
         local iv = {first = t:storageOffset(), last = t:storageOffset() + t:nElement() - 1, storage = storage, rank = i}
         local k = 1
         while k <= #list do
            local o = list[k]
            if iv.first <= o.last and o.first <= iv.last then
               iv.first, iv.last = math.min(iv.first, o.first), math.max(iv.last, o.last)
               iv.rank = math.min(iv.rank, o.rank)
               table.remove(list, k)
               k = 1
            else
               k = k + 1
            end
         end
         list[#list + 1] = iv
      end
   end
   for _, list in pairs(byStorage) do
      for _, iv in ipairs(list) do order[#order + 1] = iv end
   end
   table.sort(order, function(a, b) return a.rank < b.rank end)
   return order, byStorage
end

local function layout(order)
   local n = 0
   for _, iv in ipairs(order) do
      iv.at = n + 1
      n = n + iv.last - iv.first + 1
   end
   return n
end

-- The storage that already holds exactly this layout, or nil.
local function alreadyFlat(order, n)
   local first = order[1]
   local key = torch.pointer(first.storage)
   if first.storage:size() ~= n then return end
   for _, iv in ipairs(order) do
      if torch.pointer(iv.storage) ~= key or iv.first ~= iv.at then return end
   end
   return first.storage
end

local function find(list, offset)
   for _, iv in ipairs(list) do
      if offset >= iv.first and offset <= iv.last then return iv end
   end
end

--- A vector over one storage that holds all of parameters (tensors of one type), which become views of it.
function utils.flatten(parameters)
   if not parameters or #parameters == 0 then return torch.Tensor() end
   compact(parameters)
   local Tensor = parameters[1].new
   for i, t in ipairs(parameters) do
      if t:type() ~= parameters[1]:type() then
         error(('[getParameters] parameters of one type; got %s at %d, need %s'):format(t:type(), i, parameters[1]:type()), 2)
      end
   end
   local order, byStorage = intervals(parameters)
   local n = layout(order)
   if n == 0 then return Tensor() end
   local storage = alreadyFlat(order, n)
   if storage then return Tensor():set(storage, 1, n, 1) end
   local flat = Tensor(n)
   for _, iv in ipairs(order) do
      local length = iv.last - iv.first + 1
      flat:narrow(1, iv.at, length):copy(Tensor():set(iv.storage, iv.first, length, 1))
   end
   local places = {} -- all before the first moves: a tensor may be listed twice
   for i, t in ipairs(parameters) do
      if t:nElement() > 0 then
         local iv = find(byStorage[torch.pointer(t:storage())], t:storageOffset())
         places[i] = iv.at + t:storageOffset() - iv.first
      end
   end
   for i, t in ipairs(parameters) do
      if places[i] then t:set(flat:storage(), places[i], t:size(), t:stride()) end
   end
   return flat
end

return utils
