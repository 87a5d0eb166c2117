-- Transforms: scale, crop, flips, translate, rotate (images of height x width or channels x height x width -> images).
local torch = require 'torch'
local C = require 'relume.core'
local M = {}

-- Leading result, then the rest.
local function result(a, b, ...)
   if torch.isTensor(a) and torch.isTensor(b) then return a, b, ... end
   return nil, a, b, ...
end

local function deliver(res, value)
   return res and res:resize(value:size()):copy(value) or value
end

local function sizes(x)
   if x:dim() ~= 2 and x:dim() ~= 3 then error('[image] dimensions; got ' .. x:dim() .. ', need 2 or 3', 3) end
   return x:size(x:dim()), x:size(x:dim() - 1)
end

-- Weights (to, from) of one direction of a scaling; rows add up to 1.
local function linear(from, to)
   local w = torch.DoubleTensor(to, from):zero()
   local last = 0
   for i = 0, to - 1 do
      local row = w[i + 1]
      if to > from then
         local at = from > 1 and to > 1 and i * (from - 1) / (to - 1) or 0
         local low = math.min(math.floor(at), math.max(from - 2, 0))
         row[low + 1] = 1 - (at - low)
         if from > 1 then row[low + 2] = at - low end
      else -- the mean of what the new pixel covers
         local stop = (i + 1) * from / to
         for s = math.floor(last), math.min(math.ceil(stop), from) - 1 do row[s + 1] = math.min(stop, s + 1) - math.max(last, s) end
         row:div(row:sum())
         last = stop
      end
   end
   return w
end

local function nearest(from, to)
   local w = torch.DoubleTensor(to, from):zero()
   for i = 0, to - 1 do w[i + 1][math.min(math.floor(i * from / to), from - 1) + 1] = 1 end
   return w
end

-- Catmull and Rom's cubic through four neighbours; beyond the edge the line goes on straight.
local function cubic(from, to)
   if from < 2 then return linear(from, to) end
   local w = torch.DoubleTensor(to, from):zero()
   for i = 0, to - 1 do
      local at = to > 1 and i * (from - 1) / (to - 1) or 0
      local low = math.min(math.floor(at), from - 2)
      local x = at - low
      local k = {-0.5 * x + x * x - 0.5 * x ^ 3, 1 - 2.5 * x * x + 1.5 * x ^ 3, 0.5 * x + 2 * x * x - 1.5 * x ^ 3, -0.5 * x * x + 0.5 * x ^ 3}
      if low == 0 then k[2], k[3] = k[2] + 2 * k[1], k[3] - k[1] end
      if low == from - 2 then k[3], k[2] = k[3] + 2 * k[4], k[2] - k[4] end
      for n = 1, 4 do
         local s = low + n - 1
         if s >= 1 and s <= from then w[i + 1][s] = w[i + 1][s] + k[n] end
      end
   end
   return w
end

local modes = {bilinear = linear, simple = nearest, bicubic = cubic}

local function resample(x, width, height, mode)
   local make = modes[mode or 'bilinear']
   if not make then error('[image.scale] mode; got ' .. tostring(mode) .. ", need 'bilinear', 'bicubic' or 'simple'", 3) end
   width, height = math.max(1, math.floor(width)), math.max(1, math.floor(height))
   local w, h = sizes(x)
   local planes = x:double():contiguous():view(-1, h, w)
   local across, down, out = make(w, width):t(), make(h, height), {}
   for c = 1, planes:size(1) do
      local plane = planes[c]
      if w ~= width then plane = plane * across end
      if h ~= height then plane = down * plane end
      out[c] = plane:contiguous():view(1, height, width)
   end
   local r = torch.cat(out, 1)
   if x:type() == 'torch.ByteTensor' then r = r:clamp(0, 255):add(0.5):floor() end
   return (x:dim() == 2 and r[1] or r):type(x:type())
end

-- Width and height that a size asks for: 'WxH' and n fit into it, '^...' cover it, 'WxH!' is exact, '*s' and '*a/b' multiply.
local function asked(size, w, h)
   local text = tostring(size)
   local a, b = text:match '^%*([%d%.]+)/?([%d%.]*)$'
   if a then
      local s = tonumber(a) / (tonumber(b) or 1)
      return w * s + 0.5, h * s + 0.5
   end
   local exact = text:find('!', 1, true)
   local cover = text:find('^', 1, true)
   local W, H = text:match '(%d+)x(%d+)'
   W, H = tonumber(W or text:match '%d+'), tonumber(H or text:match '%d+')
   if not W then error('[image.scale] size; got ' .. text .. ", need a number, 'WxH', '^WxH', 'WxH!' or '*scale'", 3) end
   if exact then return W, H end
   local s = (cover and math.max or math.min)(W / w, H / h)
   return w * s + 0.5, h * s + 0.5
end

--- scale(src, width, height [, mode]), scale(src, size [, mode]), scale(dst, src [, mode]): mode 'bilinear' (areas when it shrinks), 'bicubic', 'simple'.
function M.scale(...)
   local dst, src, a, b, c = result(...)
   local w, h = sizes(src)
   if dst then
      local width, height = sizes(dst)
      return dst:copy(resample(src, width, height, a))
   end
   if type(a) == 'number' and type(b) == 'number' then return resample(src, a, b, c) end
   local width, height = asked(a, w, h)
   return resample(src, width, height, b)
end

local corners = {c = {0.5, 0.5}, tl = {0, 0}, tr = {1, 0}, bl = {0, 1}, br = {1, 1}}

--- crop([dst,] src, x1, y1 [, x2, y2]): from x1, y1 (counted from 0) up to before x2, y2; crop([dst,] src, 'c' | 'tl' | 'tr' | 'bl' | 'br', width, height).
function M.crop(...)
   local dst, src, a, b, c, d = result(...)
   local w, h = sizes(src)
   if type(a) == 'string' then
      local corner = corners[a] or error('[image.crop] place; got ' .. a .. ", need 'c', 'tl', 'tr', 'bl' or 'br'", 2)
      a, b, c, d = math.floor((w - b) * corner[1]), math.floor((h - c) * corner[2]), b, c
      c, d = a + c, b + d
   end
   if not c then
      if dst then c, d = a + (sizes(dst)), b + select(2, sizes(dst)) else c, d = w, h end
   end
   if a < 0 or b < 0 or c > w or d > h or a >= c or b >= d then
      error(('[image.crop] window; got %g,%g to %g,%g, need one inside %dx%d'):format(a, b, c, d, w, h), 2)
   end
   local n = src:dim()
   return deliver(dst, src:narrow(n, a + 1, c - a):narrow(n - 1, b + 1, d - b):clone())
end

local function flipped(x, dim) return (C.op.flip(x, {dim - 1})) end

--- hflip([dst,] src): left and right change places.
function M.hflip(...)
   local dst, src = result(...)
   return deliver(dst, flipped(src, src:dim()))
end

--- vflip([dst,] src): top and bottom change places.
function M.vflip(...)
   local dst, src = result(...)
   return deliver(dst, flipped(src, src:dim() - 1))
end

--- flip([dst,] src, dim): reverses one dimension.
function M.flip(...)
   local dst, src, dim = result(...)
   return deliver(dst, flipped(src, dim or src:dim()))
end

--- translate([dst,] src, x, y): moved right and down; what comes in is 0.
function M.translate(...)
   local dst, src, x, y = result(...)
   local w, h = sizes(src)
   local out, n = src:clone():zero(), src:dim()
   if math.abs(x) < w and math.abs(y) < h then
      local function part(t, dx, dy) return t:narrow(n, 1 + math.max(dx, 0), w - math.abs(dx)):narrow(n - 1, 1 + math.max(dy, 0), h - math.abs(dy)) end
      part(out, x, y):copy(part(src, -x, -y))
   end
   return deliver(dst, out)
end

-- Values of planes (c, h * w) at positions x, y of the source, 0 outside; nearest or of four neighbours.
local function sampled(planes, w, h, xs, ys, bilinear)
   local n, out = #xs, nil
   local function take(ix, iy, weight)
      local index, factor = torch.LongTensor(n), torch.DoubleTensor(n)
      for i = 1, n do
         local x, y = ix(xs[i]), iy(ys[i])
         local inside = x >= 0 and x < w and y >= 0 and y < h
         index[i] = inside and y * w + x + 1 or 1
         factor[i] = inside and weight(xs[i], ys[i]) or 0
      end
      local part = planes:index(2, index):cmul(factor:view(1, n):expand(planes:size(1), n))
      out = out and out:add(part) or part
   end
   local floor = math.floor
   if not bilinear then
      local function round(v) return floor(v + 0.5) end
      take(round, round, function() return 1 end)
      return out
   end
   local function up(v) return floor(v) + 1 end
   take(floor, floor, function(x, y) return (1 - x + floor(x)) * (1 - y + floor(y)) end)
   take(up, floor, function(x, y) return (x - floor(x)) * (1 - y + floor(y)) end)
   take(floor, up, function(x, y) return (1 - x + floor(x)) * (y - floor(y)) end)
   take(up, up, function(x, y) return (x - floor(x)) * (y - floor(y)) end)
   return out
end

--- rotate([dst,] src, theta [, 'simple' or 'bilinear']): counter-clockwise by theta radians about the centre; 0 outside.
function M.rotate(...)
   local dst, src, theta, mode = result(...)
   local w, h = sizes(src)
   local xc, yc, cos, sin, xs, ys = (w - 1) / 2, (h - 1) / 2, math.cos(theta), math.sin(theta), {}, {}
   for y = 0, h - 1 do
      for x = 0, w - 1 do
         xs[#xs + 1] = xc + cos * (x - xc) - sin * (y - yc)
         ys[#ys + 1] = yc + sin * (x - xc) + cos * (y - yc)
      end
   end
   local out = sampled(src:double():contiguous():view(-1, h * w), w, h, xs, ys, mode == 'bilinear')
   return deliver(dst, out:view(src:size()):type(src:type()))
end

return M
