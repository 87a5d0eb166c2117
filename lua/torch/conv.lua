-- Conv: torch.conv2 and xcorr2 over the core's convolution (matrices and stacks of planes).
-- conv2(x, k, 'F' or 'V'): full or valid; x (h, w) with k (h, w); x (p, h, w) with k (p, h, w): plane by plane; k (o, p, h, w): summed over planes.
local C = require 'relume.core'
local torch = C.torch
local M = {}

local function flipped(k)
   return C.op.flip(k, {k:dim() - 2, k:dim() - 1})
end

-- One call of conv2d; x (1, p, h, w), k (o, p / groups, kh, kw).
local function correlate(x, k, full, groups)
   local pad = full and {k:size(3) - 1, k:size(4) - 1} or {0, 0}
   return (C.op.conv2d(x, k, nil, {1, 1}, pad, {1, 1}, groups))
end

local function run(name, x, k, mode, flip)
   local full = mode == 'F' or mode == 'f'
   if mode and not full and mode ~= 'V' and mode ~= 'v' then error('[' .. name .. "] mode; got " .. tostring(mode) .. ", need 'F' or 'V'", 3) end
   if flip then k = flipped(k) end
   local xd, kd = x:dim(), k:dim()
   x, k = x:contiguous(), k:contiguous()
   if xd == 2 and kd == 2 then
      return correlate(x:view(1, 1, x:size(1), x:size(2)), k:view(1, 1, k:size(1), k:size(2)), full, 1)[1][1]
   elseif xd == 3 and kd == 3 then
      local p = x:size(1)
      return correlate(x:view(1, p, x:size(2), x:size(3)), k:view(p, 1, k:size(2), k:size(3)), full, p)[1]
   elseif xd == 3 and kd == 4 then
      return correlate(x:view(1, x:size(1), x:size(2), x:size(3)), k, full, 1)[1]
   end
   error('[' .. name .. '] dimensions; got ' .. xd .. ' and ' .. kd .. ', need 2 and 2, 3 and 3, or 3 and 4', 3)
end

local function make(name, flip)
   return function(a, b, c, d)
      local res
      if torch.isTensor(c) then res, a, b, c = a, b, c, d end
      local r = run(name, a, b, c, flip)
      return res and res:resizeAs(r):copy(r) or r
   end
end

M.conv2, M.xcorr2 = make('conv2', true), make('xcorr2', false)
for _, name in ipairs {'conv2', 'xcorr2'} do
   rawset(torch, name, M[name])
end

return M
