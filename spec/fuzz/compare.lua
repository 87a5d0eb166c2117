-- Snapshots: everything that can be seen of values, as a flat list with a path for each item (values -> list; two lists -> difference).
-- Objects are numbered as they are met, so that two that are one, and tensors over one storage, are told from copies.

local M = {}

local Shot = {}
Shot.__index = Shot

local function chunkOf(f) return debug.getinfo(f, 'S').source end

function Shot:put(path, v)
   local n = #self.items + 1
   self.items[n], self.paths[n] = v, path
end

-- True when the object is met for the first time; puts its number.
function Shot:first(path, kind, v)
   local n = self.ids[v]
   if not n then
      self.count = self.count + 1
      self.ids[v] = self.count
   end
   self:put(path, kind .. ' #' .. (n or self.count))
   return not n
end

local function join(list) return table.concat(list, 'x') end

-- Strides; that of a dimension of one element means nothing.
local function strides(t)
   local list = t:stride():totable()
   for d = 1, #list do
      if t:size(d) == 1 then list[d] = '-' end
   end
   return join(list)
end

function Shot:tensor(path, t)
   if not self:first(path, torch.typename(t), t) then return end
   local n = t:nElement()
   local leaf = not t:requiresGrad() or t:isLeaf()
   self:put(path .. ':size', join(t:size():totable()))
   if n > 0 then
      self:put(path .. ':stride', strides(t))
      if leaf then
         local s = tostring(t:storage() and torch.pointer(t:storage()))
         if not self.ids[s] then self.count = self.count + 1 self.ids[s] = self.count end
         self:put(path .. ':storage', 'storage #' .. self.ids[s])
         self:put(path .. ':offset', t:storageOffset())
      end
   end
   self:put(path .. ':requiresGrad', tostring(t:requiresGrad()) .. tostring(leaf))
   for i, x in ipairs(n > 0 and t:detach():contiguous():view(-1):totable() or {}) do self:put(path .. '[' .. i .. ']', x) end
   if t:requiresGrad() and t:isLeaf() then self:value(path .. ':grad', t:grad()) end
end

local function plain(v) return type(v) == 'string' or type(v) == 'number' or type(v) == 'boolean' end

local function amount(v)
   if torch.isTensor(v) then return v:nElement() > 0 and v:detach():double():sum() or 0 end
   return plain(v) and (tonumber(v) or 0) or nil
end

local function kept(v)
   local x = amount(v)
   return x and ('%.4f'):format(x) or type(v)
end

-- Objects that were not met yet are ordered by what is kept under them.
local function keyText(k, v, ids)
   if plain(k) then return tostring(k) end
   return '#' .. (ids[k] or '?' .. kept(v))
end

function Shot:table(path, t)
   local name = torch.typename(t)
   if not self:first(path, name or 'table', t) then return end
   local keys, texts, amounts = {}, {}, {}
   for k, v in next, t do
      keys[#keys + 1] = k
      local x = amount(v)
      texts[k], amounts[k] = type(k) .. keyText(k, v, self.ids), x == x and x or 0
   end
   table.sort(keys, function(a, b)
      if texts[a] ~= texts[b] then return texts[a] < texts[b] end
      if amounts[a] ~= amounts[b] then return amounts[a] < amounts[b] end
      return type(rawget(t, a)) < type(rawget(t, b))
   end)
   self:put(path .. '.n', #keys)
   for _, k in ipairs(keys) do
      self:put(path .. '<' .. texts[k] .. '>', texts[k])
      self:value(path .. '.' .. texts[k], rawget(t, k))
   end
   if not name then self:value(path .. '.meta', debug.getmetatable(t)) end
end

--- Functions of the program are known by their lines and upvalues; others by name alone.
function Shot:func(path, f)
   local source = chunkOf(f)
   if source ~= '=fuzz' then return self:put(path, 'function') end
   if not self:first(path, 'function', f) then return end
   self:put(path .. ':line', debug.getinfo(f, 'S').linedefined)
   for i = 1, 60 do
      local name, v = debug.getupvalue(f, i)
      if not name then break end
      if name ~= 'lib' then self:value(path .. '^' .. name, v) end
   end
end

function Shot:value(path, v)
   local t = type(v)
   if torch.isTensor(v) then self:tensor(path, v)
   elseif t == 'table' then self:table(path, v)
   elseif t == 'function' then self:func(path, v)
   elseif t == 'userdata' and torch.isStorage(v) then self:put(path, torch.typename(v) .. ' ' .. join(v:totable()))
   elseif t == 'string' or t == 'number' then self:put(path, v)
   else self:put(path, tostring(v)) end
end

--- A snapshot of values by name: {name, value, name, value ...}, n of them.
function M.shot(list, n)
   local s = setmetatable({items = {}, paths = {}, ids = {}, count = 0}, Shot)
   for i = 1, n, 2 do s:value(list[i], list[i + 1]) end
   return s
end

-- A compiled function is one op on the tape: what it says of a second backward names no op inside.
local function sameFreed(a, b)
   if type(a) ~= 'string' or type(b) ~= 'string' then return false end
   local pattern = '%[[%w_]+%] the saved values were freed'
   return a:find(pattern) ~= nil and a:gsub(pattern, '') == b:gsub(pattern, '')
end

local function near(a, b, tolerance)
   if sameFreed(a, b) then return true end
   if type(a) ~= 'number' or type(b) ~= 'number' then return a == b end
   if a ~= a or b ~= b then return a ~= a and b ~= b end
   return a == b or math.abs(a - b) <= tolerance * (1 + math.max(math.abs(a), math.abs(b)))
end

--- The first difference of two snapshots as text, or nil.
function M.difference(want, got, tolerance)
   for i = 1, math.max(#want.items, #got.items) do
      if want.paths[i] ~= got.paths[i] then
         return ('%s; got %s, need %s'):format('shape of the state', tostring(got.paths[i]), tostring(want.paths[i]))
      end
      if not near(want.items[i], got.items[i], tolerance) then
         local more = want.paths[i] == 'result 0' and (' (%s / %s)'):format(tostring(got.items[i + 1]), tostring(want.items[i + 1])) or ''
         return ('%s; got %s, need %s%s'):format(want.paths[i], tostring(got.items[i]), tostring(want.items[i]), more)
      end
   end
end

return M
