-- Math: functions that are compositions of ops or count elements (cross, renorm, histc, einsum, roll).
-- Added to the torch table and to every tensor type.
local C = require 'relume.core'
local torch = C.torch
local op = C.op
local M = {}

local isTensor = torch.isTensor

-- (res, x, ...) or (x, ...): moves a leading result out of the way.
local function result(first, second, ...)
   if isTensor(second) then return first, second, ... end
   return nil, first, second, ...
end

local function deliver(res, value)
   if not res then return value end
   return res:resizeAs(value):copy(value)
end

--- cross([res,] a, b [, dim]): cross product along a dimension of size 3 (the first one by default).
function M.cross(...)
   local res, a, b, dim
   if isTensor(select(3, ...)) then res, a, b, dim = ... else a, b, dim = ... end
   if not dim then
      for d = 1, a:dim() do
         if a:size(d) == 3 then dim = d break end
      end
   end
   if not dim or a:size(dim) ~= 3 or not a:isSameSizeAs(b) then
      error('[cross] dimension of size 3; got ' .. tostring(dim or 'none') .. ', need two tensors of equal sizes with one', 2)
   end
   local function part(t, i) return t:narrow(dim, i, 1) end
   local function term(i, j) return torch.cmul(part(a, i), part(b, j)):csub(torch.cmul(part(a, j), part(b, i))) end
   return deliver(res, torch.cat({term(2, 3), term(3, 1), term(1, 2)}, dim))
end

--- renorm([res,] x, p, dim, maxnorm): slices along dim whose p-norm exceeds maxnorm are scaled down to it.
local function renormed(x, p, dim, maxnorm)
   local dims = {}
   for d = 0, x:dim() - 1 do
      if d ~= dim - 1 then dims[#dims + 1] = d end
   end
   local norms = op.norm(x, p, dims, true)
   local scale = op.where(norms:gt(maxnorm), torch.div(norms, maxnorm):add(1e-7 / maxnorm):pow(-1), 1)
   return torch.cmul(x, scale:expandAs(x))
end

function M.renorm(...)
   local res, x, p, dim, maxnorm = result(...)
   return deliver(res, renormed(x, p, dim, maxnorm))
end

--- histc([res,] x [, bins = 100 [, min = 0 [, max = 0]]]): counts; equal bounds mean the data's own.
function M.histc(...)
   local res, x, bins, lo, hi = result(...)
   bins, lo, hi = bins or 100, lo or 0, hi or 0
   if lo == hi then lo, hi = x:min(), x:max() end
   if lo == hi then lo, hi = lo - 1, hi + 1 end
   local counts = {}
   for i = 1, bins do counts[i] = 0 end
   x:clone():apply(function(v)
      if v >= lo and v <= hi then
         local bin = math.min(math.floor((v - lo) / (hi - lo) * bins) + 1, bins)
         counts[bin] = counts[bin] + 1
      end
   end)
   return deliver(res, x.new(counts))
end

--- bhistc([res,] x [, bins [, min [, max]]]): histc of every row.
function M.bhistc(...)
   local res, x, bins, lo, hi = result(...)
   local rows = {}
   for i = 1, x:size(1) do rows[i] = M.histc(x[i], bins, lo, hi):view(1, -1) end
   return deliver(res, torch.cat(rows, 1))
end

--- match([res,] a, b [, gain = 1]): gain times the squared distance of every row of a (n, ...) from every row of b (m, ...): (n, m).
function M.match(...)
   local res, a, b, gain
   if isTensor(select(3, ...)) then res, a, b, gain = ... else a, b, gain = ... end
   if not isTensor(b) or a:dim() == 0 or b:dim() == 0 or a[1]:nElement() ~= b[1]:nElement() then
      error('[match] rows; got tensors that differ in the size of a row, need two of equal row sizes', 2)
   end
   local x, y, rows = a:contiguous():view(a:size(1), -1), b:contiguous():view(b:size(1), -1), {}
   for i = 1, x:size(1) do rows[i] = op.sum(op.square(op.sub(y, x:narrow(1, i, 1))), {1}, false):view(1, -1) end
   return deliver(res, torch.cat(rows, 1):mul(gain or 1))
end

-- Functions of today's Torch -------------------------------------------------------------------------------------------------------

local function dimension(name, x, d)
   local n = x:dim()
   local at = type(d) == 'number' and (d < 0 and d + n + 1 or d)
   if not at or at < 1 or at > n or at ~= math.floor(at) then
      error(('[%s] dimension; got %s for %d dimensions, need 1 to %d'):format(name, tostring(d), n, n), 3)
   end
   return at
end

local function needTensor(name, x)
   if not isTensor(x) then error(('[%s] argument 1; got %s, need a tensor'):format(name, torch.type(x)), 3) end
end

--- where(mask, a, b): a where the Byte tensor mask is not 0, else b; a and b are tensors or numbers, sizes broadcast.
function M.where(mask, a, b)
   needTensor('where', mask)
   return op.where(mask, a, b)
end

--- flip(x, dim, ...): the elements in reverse order along each of the dimensions.
function M.flip(x, ...)
   needTensor('flip', x)
   local dims, seen = {}, {}
   for i = 1, select('#', ...) do
      local d = dimension('flip', x, (select(i, ...)))
      if seen[d] then error(('[flip] dimensions; got %d twice, need each once'):format(d), 2) end
      seen[d], dims[i] = true, d - 1
   end
   if #dims == 0 then error('[flip] dimensions; got none, need one or more', 2) end
   return op.flip(x, dims)
end

--- roll(x, n, dim): the elements moved n places up along dim, those past the end come in again at the start.
function M.roll(x, n, dim)
   needTensor('roll', x)
   local d = dimension('roll', x, dim)
   if type(n) ~= 'number' or n ~= math.floor(n) then error('[roll] places; got ' .. tostring(n) .. ', need a whole number', 2) end
   local size = x:size(d)
   local k = size > 0 and n % size or 0
   if k == 0 then return x:clone() end
   return torch.cat(x:narrow(d, size - k + 1, k), x:narrow(d, 1, size - k), d)
end

-- A tensor whose dimensions have labels; those that come twice in it become their diagonal.
local function labelled(x, labels)
   for i = 1, #labels do
      local j = labels:find(labels:sub(i, i), i + 1, true)
      if j then
         local n, order, sizes, rest = x:size(i), {i, j}, {}, labels:sub(i, i)
         for d = 1, x:dim() do
            if d ~= i and d ~= j then
               order[#order + 1], sizes[#sizes + 1] = d, x:size(d)
               rest = rest .. labels:sub(d, d)
            end
         end
         local flat = x:permute(unpack(order)):contiguous():view(n * n, unpack(sizes))
         return labelled(flat:index(1, torch.range(1, n * n, n + 1):long()), rest)
      end
   end
   return x, labels
end

-- Sums over the labels that keep does not have.
local function reduced(x, labels, keep)
   local dims, rest = {}, ''
   for d = 1, #labels do
      local c = labels:sub(d, d)
      if keep:find(c, 1, true) then rest = rest .. c else dims[#dims + 1] = d - 1 end
   end
   if #dims == 0 then return x, labels end
   return op.sum(x, dims, false), rest
end

-- x with its dimensions as groups of labels, each group one dimension.
local function grouped(x, labels, groups)
   local order, sizes = {}, {}
   for g, group in ipairs(groups) do
      sizes[g] = 1
      for c in group:gmatch '.' do
         local d = labels:find(c, 1, true)
         order[#order + 1], sizes[g] = d, sizes[g] * x:size(d)
      end
   end
   if #order > 1 then x = x:permute(unpack(order)) end
   return x:contiguous():view(unpack(sizes))
end

-- Two tensors become one by a product of matrices: labels of both that stay are its batch, those of both that go are summed.
local function contract(a, la, b, lb, keep, size)
   a, la = reduced(a, la, keep .. lb)
   b, lb = reduced(b, lb, keep .. la)
   local batch, inner, left, right = '', '', '', ''
   for c in la:gmatch '.' do
      if not lb:find(c, 1, true) then left = left .. c
      elseif keep:find(c, 1, true) then batch = batch .. c
      else inner = inner .. c end
   end
   for c in lb:gmatch '.' do
      if not la:find(c, 1, true) then right = right .. c end
   end
   local labels, sizes = batch .. left .. right, {}
   for c in labels:gmatch '.' do sizes[#sizes + 1] = size[c] end
   local r = torch.bmm(grouped(a, la, {batch, left, inner}), grouped(b, lb, {batch, inner, right}))
   return #sizes > 0 and r:view(unpack(sizes)) or op.sum(r, {0, 1, 2}, false), labels
end

--- einsum('ij,jk->ik', x, y, ...): products of tensors summed over the labels that the result lacks; a label is one letter, one that comes
-- twice in a tensor is its diagonal. Without an arrow the result has the labels that come once, in alphabetical order. Any number of
-- tensors, or one table of them, from left to right; a result without labels has one element.
function M.einsum(text, ...)
   local list = isTensor((...)) and {...} or (...)
   if type(text) ~= 'string' or type(list) ~= 'table' or not isTensor(list[1]) then
      error(("[einsum] arguments; got %s and %s, need text like 'ij,jk->ik' and tensors"):format(torch.type(text), torch.type((...))), 2)
   end
   local inputs, out = text:gsub('%s', ''):match '^([%a,]*)%->(%a*)$'
   inputs = inputs or text:gsub('%s', ''):match '^[%a,]*$'
   if not inputs then error("[einsum] labels; got '" .. text .. "', need letters, commas and at most one arrow", 2) end
   local size, count, parts = {}, {}, {}
   for labels in (inputs .. ','):gmatch '(%a*),' do
      local x = list[#parts + 1]
      if not isTensor(x) or x:dim() ~= #labels or #labels == 0 then
         error(("[einsum] tensor %d; got %s, need %d dimensions for '%s'"):format(#parts + 1, isTensor(x) and x:dim() .. ' dimensions' or torch.type(x),
            #labels, labels), 2)
      end
      for d = 1, #labels do
         local c = labels:sub(d, d)
         if size[c] and size[c] ~= x:size(d) then
            error(("[einsum] size of '%s'; got %d and %d, need one size"):format(c, size[c], x:size(d)), 2)
         end
         size[c], count[c] = x:size(d), (count[c] or 0) + 1
      end
      parts[#parts + 1] = labels
   end
   if #list ~= #parts then error(('[einsum] tensors; got %d, need %d'):format(#list, #parts), 2) end
   if not out then
      local once = {}
      for c, n in pairs(count) do
         if n == 1 then once[#once + 1] = c end
      end
      table.sort(once)
      out = table.concat(once)
   end
   for i = 1, #out do
      local c = out:sub(i, i)
      if not size[c] or out:find(c, i + 1, true) then error(("[einsum] result; got '%s', need labels of the tensors, each once"):format(out), 2) end
   end
   local r, labels = labelled(list[1], parts[1])
   for i = 2, #parts do
      local y, other = labelled(list[i], parts[i])
      r, labels = contract(r, labels, y, other, out .. table.concat(parts, '', i + 1), size)
   end
   r, labels = reduced(r, labels, out)
   if labels == out then return r end
   local order = {}
   for i = 1, #out do order[i] = labels:find(out:sub(i, i), 1, true) end
   return r:permute(unpack(order)):contiguous()
end

function M.register()
   for _, name in ipairs {'where', 'flip', 'roll', 'einsum'} do rawset(torch, name, M[name]) end
   for type in pairs(C.constructors) do
      for _, name in ipairs {'flip', 'roll'} do torch.getmetatable(type)[name] = M[name] end
   end
   for _, name in ipairs {'cross', 'renorm', 'histc', 'bhistc', 'match'} do
      rawset(torch, name, M[name])
      for type in pairs(C.constructors) do torch.getmetatable(type)[name] = M[name] end
   end
   for type in pairs(C.constructors) do -- x:renorm(p, dim, maxnorm) works in place
      torch.getmetatable(type).renorm = function(self, a, ...)
         if isTensor(a) then return M.renorm(self, a, ...) end
         return self:copy(renormed(self, a, ...))
      end
   end
end
M.register()

return M
