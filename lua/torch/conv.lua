-- Conv: torch.conv2, xcorr2, conv3 and xcorr3 over the core's convolution (matrices, volumes and stacks of them).
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

-- Three dimensions: windows along the depth become channels. x (p, d, h, w), k (o, p / groups, kd, kh, kw) -> (o, d', h', w').
local function correlate3(x, k, full, groups)
   local kd = k:size(3)
   if full then x = C.op.pad(x, {0, kd - 1, 0, 0}, {0, kd - 1, 0, 0}, 0) end
   local p, h, w = x:size(1), x:size(3), x:size(4)
   local windows = x:unfold(2, kd, 1):permute(2, 1, 5, 3, 4):contiguous() -- (d', p, kd, h, w)
   local planes = windows:view(windows:size(1), p * kd, h, w)
   local kernels = k:contiguous():view(k:size(1), k:size(2) * kd, k:size(4), k:size(5))
   return correlate(planes, kernels, full, groups):transpose(1, 2):contiguous()
end

local function run3(name, x, k, mode, flip)
   local full = mode == 'F' or mode == 'f'
   if mode and not full and mode ~= 'V' and mode ~= 'v' then error('[' .. name .. "] mode; got " .. tostring(mode) .. ", need 'F' or 'V'", 3) end
   local xd, kd = x:dim(), k:dim()
   if kd < 3 then error('[' .. name .. '] dimensions; got ' .. xd .. ' and ' .. kd .. ', need 3 and 3, 4 and 4, or 4 and 5', 3) end
   if flip then k = C.op.flip(k, {kd - 3, kd - 2, kd - 1}) end
   x, k = x:contiguous(), k:contiguous()
   if xd == 3 and kd == 3 then
      return correlate3(x:view(1, x:size(1), x:size(2), x:size(3)), k:view(1, 1, k:size(1), k:size(2), k:size(3)), full, 1)[1]
   elseif xd == 4 and kd == 4 then
      return correlate3(x, k:view(k:size(1), 1, k:size(2), k:size(3), k:size(4)), full, x:size(1))
   elseif xd == 4 and kd == 5 then
      return correlate3(x, k, full, 1)
   end
   error('[' .. name .. '] dimensions; got ' .. xd .. ' and ' .. kd .. ', need 3 and 3, 4 and 4, or 4 and 5', 3)
end

local function make3(name, flip)
   return function(a, b, c, d)
      local res
      if torch.isTensor(c) then res, a, b, c = a, b, c, d end
      local r = run3(name, a, b, c, flip)
      return res and res:resizeAs(r):copy(r) or r
   end
end

M.conv2, M.xcorr2 = make('conv2', true), make('xcorr2', false)
--- conv3([res,] x, k [, 'F' or 'V']) and xcorr3: the same in three dimensions; x (d, h, w) with k (d, h, w); x (p, d, h, w) with k (p, d, h, w),
-- plane by plane, or with k (o, p, d, h, w), summed over planes.
M.conv3, M.xcorr3 = make3('conv3', true), make3('xcorr3', false)
for name in pairs {conv2 = 1, xcorr2 = 1, conv3 = 1, xcorr3 = 1} do
   rawset(torch, name, M[name])
end

return M
