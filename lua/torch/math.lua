-- Math: functions of Torch7 that are compositions of ops or count elements (cross, renorm, histc).
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

function M.register()
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
