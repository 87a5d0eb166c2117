-- Colours: RGB to and from YUV, HSV and HSL, gray (3 x height x width in [0, 1] -> the same).
local torch = require 'torch'
local M = {}

local function result(a, b)
   if torch.isTensor(b) then return a, b end
   return nil, a
end

local function deliver(res, value)
   return res and res:resize(value:size()):copy(value) or value
end

-- Applies a matrix of rows over the three planes.
local function mixed(name, rows)
   M[name] = function(...)
      local res, x = result(...)
      if x:dim() ~= 3 or x:size(1) ~= 3 then error('[image.' .. name .. '] sizes; got ' .. x:dim() .. ' dimensions, need 3 x height x width', 2) end
      local m = torch.Tensor(rows):type(x:type())
      return deliver(res, (m * x:contiguous():view(3, -1)):view(#rows, x:size(2), x:size(3)))
   end
end

--- rgb2y, rgb2yuv, yuv2rgb ([dst,] src): luma and colour differences (ITU-R BT.601).
mixed('rgb2y', {{0.299, 0.587, 0.114}})
mixed('rgb2yuv', {{0.299, 0.587, 0.114}, {-0.14713, -0.28886, 0.436}, {0.615, -0.51499, -0.10001}})
mixed('yuv2rgb', {{1, 0, 1.13983}, {1, -0.39465, -0.58060}, {1, 2.03211, 0}})

-- Applies f(a, b, c) -> a, b, c to every pixel.
local function pixelwise(name, f)
   M[name] = function(...)
      local res, x = result(...)
      if x:dim() ~= 3 or x:size(1) ~= 3 then error('[image.' .. name .. '] sizes; got ' .. x:dim() .. ' dimensions, need 3 x height x width', 2) end
      local t = x:double():clone():contiguous()
      local p, n = t:data(), x:size(2) * x:size(3)
      for i = 0, n - 1 do p[i], p[n + i], p[2 * n + i] = f(p[i], p[n + i], p[2 * n + i]) end
      return deliver(res, t:type(x:type()))
   end
end

local function hue(r, g, b, most, range)
   if range == 0 then return 0 end
   local h = most == r and (g - b) / range or most == g and (b - r) / range + 2 or (r - g) / range + 4
   return (h / 6) % 1
end

local function ramp(p, q, t)
   t = t % 1
   if t < 1 / 6 then return p + (q - p) * 6 * t end
   if t < 1 / 2 then return q end
   if t < 2 / 3 then return p + (q - p) * (2 / 3 - t) * 6 end
   return p
end

pixelwise('rgb2hsv', function(r, g, b)
   local most, least = math.max(r, g, b), math.min(r, g, b)
   return hue(r, g, b, most, most - least), most == 0 and 0 or (most - least) / most, most
end)
pixelwise('hsv2rgb', function(h, s, v)
   local i = math.floor(h * 6)
   local f = h * 6 - i
   local p, q, t = v * (1 - s), v * (1 - f * s), v * (1 - (1 - f) * s)
   i = i % 6
   if i == 0 then return v, t, p elseif i == 1 then return q, v, p elseif i == 2 then return p, v, t end
   if i == 3 then return p, q, v elseif i == 4 then return t, p, v end
   return v, p, q
end)
pixelwise('rgb2hsl', function(r, g, b)
   local most, least = math.max(r, g, b), math.min(r, g, b)
   local l, range = (most + least) / 2, most - least
   return hue(r, g, b, most, range), range == 0 and 0 or range / (l > 0.5 and 2 - most - least or most + least), l
end)
pixelwise('hsl2rgb', function(h, s, l)
   if s == 0 then return l, l, l end
   local q = l < 0.5 and l * (1 + s) or l + s - l * s
   local p = 2 * l - q
   return ramp(p, q, h + 1 / 3), ramp(p, q, h), ramp(p, q, h - 1 / 3)
end)

return M
