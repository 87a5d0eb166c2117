-- image: files, transforms, colours and grids of images, as Torch7's image package (files <-> tensors of channels x height x width).
local torch = require 'torch'
local image = {}
package.loaded['image'] = image
rawset(_G, 'image', image)

for _, part in ipairs {'transform', 'color'} do
   for name, f in pairs(require('image.' .. part)) do image[name] = f end
end

local types = {byte = 'torch.ByteTensor', float = 'torch.FloatTensor', double = 'torch.DoubleTensor'}
local kinds = {png = 'PNG', jpg = 'JPG', jpeg = 'JPG', ppm = 'PPM', pgm = 'PPM'}

local function codec(kind, direction)
   return require('image.codec')[direction .. kind]
end

local function read(name)
   local f, why = io.open(name, 'rb')
   if not f then error('[image.load] file; got ' .. tostring(why) .. ', need one that can be read', 3) end
   local bytes = f:read '*a'
   f:close()
   return bytes
end

-- With the number of channels asked for.
local function to_depth(t, depth)
   local n = t:size(1)
   if depth == 1 and n >= 3 then return image.rgb2y(t:narrow(1, 1, 3):double()):add(0.5):floor():byte() end
   if depth == 1 then return t:narrow(1, 1, 1) end
   if depth == 3 and n >= 3 then return t:narrow(1, 1, 3) end
   if depth == 3 then return t:narrow(1, 1, 1):expand(3, t:size(2), t:size(3)):clone() end
   if depth then error('[image.load] channels; got ' .. tostring(depth) .. ', need 1 or 3', 3) end
   return t
end

local function decoded(kind, bytes, depth, kind_of_tensor)
   local t = to_depth(codec(kind, 'decode')(bytes), depth)
   local name = types[kind_of_tensor] or torch.getdefaulttensortype()
   if name == types.byte then return t:contiguous() end
   return t:type(name):div(255)
end

-- By what the file begins with, whatever its name says.
local function kind_of(bytes, name)
   if bytes:sub(1, 4) == '\137PNG' then return 'PNG' elseif bytes:sub(1, 2) == '\255\216' then return 'JPG' elseif bytes:find '^P[2356]%s' then return 'PPM' end
   error('[image.load] format of ' .. name .. '; got neither PNG, JPEG nor PPM, need one of them', 3)
end

--- load(name [, channels 1 or 3 [, 'byte', 'float' or 'double']]): channels x height x width, in [0, 1] unless 'byte'.
function image.load(name, depth, kind_of_tensor)
   local bytes = read(name)
   return decoded(kind_of(bytes, name), bytes, depth, kind_of_tensor)
end

-- As a ByteTensor of channels x height x width; numbers are limited to [0, 1] first.
local function to_bytes(t)
   if t:dim() == 2 then t = t:view(1, t:size(1), t:size(2)) end
   if t:dim() ~= 3 or t:size(1) > 4 then error('[image.save] sizes; got ' .. t:dim() .. ' dimensions, need height x width or 1 to 4 x height x width', 3) end
   if t:type() == 'torch.ByteTensor' then return t end
   return t:double():clone():clamp(0, 1):mul(255):add(0.5):floor():byte()
end

local function encoded(kind, t, quality)
   t = to_bytes(t)
   if kind ~= 'PNG' and t:size(1) ~= 1 then t = t:size(1) == 2 and t:narrow(1, 1, 1) or t:narrow(1, 1, 3) end
   return codec(kind, 'encode')(t, quality)
end

--- save(name, tensor): PNG, JPEG or PPM by the name's ending.
function image.save(name, t, quality)
   local kind = kinds[(name:match '%.(%w+)$' or ''):lower()]
   if not kind then error('[image.save] name; got ' .. name .. ', need one that ends in .png, .jpg, .ppm or .pgm', 2) end
   local bytes = encoded(kind, t, quality)
   local f, why = io.open(name, 'wb')
   if not f then error('[image.save] file; got ' .. tostring(why) .. ', need one that can be written', 2) end
   f:write(bytes)
   f:close()
end

--- loadPNG, loadJPG, loadPPM, savePNG, saveJPG, savePPM, decompressJPG, compressJPG ...: the same for one format; the bytes in a ByteTensor.
for _, kind in ipairs {'PNG', 'JPG', 'PPM'} do
   image['load' .. kind] = function(name, depth, as) return decoded(kind, read(name), depth, as) end
   image['save' .. kind] = function(name, t, quality)
      local f = assert(io.open(name, 'wb'))
      f:write(encoded(kind, t, quality))
      f:close()
   end
   image['decompress' .. kind] = function(t, depth, as) return decoded(kind, t:clone():storage():string(), depth, as) end
   image['compress' .. kind] = function(t, quality) return torch.ByteTensor(torch.ByteStorage():string(encoded(kind, t, quality))) end
end
image.savePGM = image.savePPM

--- decompress(bytes [, channels [, type]]): any format.
function image.decompress(t, depth, as)
   local bytes = t:clone():storage():string()
   return decoded(kind_of(bytes, 'bytes'), bytes, depth, as)
end

--- getSize(name) -> LongStorage of channels, height, width.
function image.getSize(name) return image.load(name, nil, 'byte'):size() end

function image.is_supported(name) return kinds[(name:match '%.(%w+)$' or ''):lower()] ~= nil end
function image.supported_filetypes() return {'png', 'jpg', 'jpeg', 'ppm', 'pgm'} end

--- minmax{tensor =, min =, max =, symm =, inplace =, saturate =}: values moved into [0, 1].
function image.minmax(o)
   local t = o.inplace and o.tensor or o.tensor:clone()
   local lo, hi = o.min, o.max
   if o.symm then
      local most = math.max(math.abs(lo or t:min()), math.abs(hi or t:max()))
      lo, hi = -most, most
   end
   lo, hi = lo or t:min(), hi or t:max()
   t:add(-lo)
   if hi ~= lo then t:div(hi - lo) end
   return o.saturate == false and t or t:clamp(0, 1)
end

-- A list of images from a table or a tensor of 3 or 4 dimensions.
local function listed(input)
   if type(input) == 'table' then return input end
   if input:dim() == 4 or (input:dim() == 3 and input:size(1) ~= 1 and input:size(1) ~= 3) then
      local list = {}
      for i = 1, input:size(1) do list[i] = input[i] end
      return list
   end
   return {input}
end

--- toDisplayTensor{input =, padding = 0, nrow = 6, min =, max =, symmetric =, scaleeach =}: one image with all of them in a grid.
function image.toDisplayTensor(o, padding, nrow)
   if torch.isTensor(o) then o = {input = o, padding = padding, nrow = nrow} end
   if o[1] then o.input = o.input or o[1] end
   local list, pad = listed(o.input), o.padding or 0
   local function scaled(t) return image.minmax {tensor = t:double(), min = o.min, max = o.max, symm = o.symmetric, saturate = o.saturate} end
   local first = list[1]
   if #list == 1 then return scaled(first) end
   local h, w = first:size(first:dim() - 1), first:size(first:dim())
   local channels = first:dim() == 3 and first:size(1) or 1
   local columns = math.min(o.nrow or 6, #list)
   local rows = math.ceil(#list / columns)
   local grid = torch.Tensor(channels, rows * (h + pad), columns * (w + pad)):fill(0)
   local part = o.scaleeach and scaled or function(t) return t:double() end
   local joined = torch.cat((function()
      local flat = {}
      for i, t in ipairs(list) do flat[i] = part(t):contiguous():view(1, channels, h, w) end
      return flat
   end)(), 1)
   if not o.scaleeach then joined = scaled(joined) end
   for i = 1, #list do
      local r, c = math.floor((i - 1) / columns), (i - 1) % columns
      grid:narrow(2, r * (h + pad) + math.floor(pad / 2) + 1, h):narrow(3, c * (w + pad) + math.floor(pad / 2) + 1, w):copy(joined[i])
   end
   return channels == 1 and grid[1] or grid
end

local shown = 0
--- display{image =, outfile =, zoom =, ...}: writes a PNG (default: display_N.png in the temporary folder) and says where; there is no window.
function image.display(o)
   if torch.isTensor(o) or (type(o) == 'table' and not o.image) then o = {image = o} end
   local t = image.toDisplayTensor {input = o.image, padding = o.padding, nrow = o.nrow, min = o.min, max = o.max, symmetric = o.symmetric}
   if o.zoom and o.zoom ~= 1 then t = image.scale(t, '*' .. o.zoom) end
   shown = shown + 1
   local name = o.outfile or ('%s/display_%d.png'):format(os.getenv 'TMPDIR' or '/tmp', shown)
   image.save(name, t)
   print('[image.display] ' .. name)
   return {file = name}
end

--- lena(): a generated test picture, 3 x 512 x 512 (the original's photograph is not ours to ship).
function image.lena()
   local n = 512
   local x = torch.linspace(0, 1, n):view(1, n):expand(n, n)
   local y = torch.linspace(0, 1, n):view(n, 1):expand(n, n)
   local rings = torch.sqrt(torch.pow(x - 0.5, 2) + torch.pow(y - 0.5, 2)):mul(40):cos():mul(0.5):add(0.5)
   return torch.cat({x:clone():view(1, n, n), y:clone():view(1, n, n), rings:view(1, n, n)}, 1)
end
image.fabio = function() return image.rgb2y(image.lena())[1] end

--- gaussian(size = 3, sigma = 0.25, amplitude = 1, normalize = false, width, height, sigma_horz, sigma_vert, mean_horz = 0.5, mean_vert = 0.5):
-- a bell over the plane; also with these names in a table.
function image.gaussian(o, sigma, amplitude, normalize, width, height, sh, sv, mh, mv)
   if type(o) ~= 'table' then
      o = {size = o, sigma = sigma, amplitude = amplitude, normalize = normalize, width = width, height = height, sigma_horz = sh, sigma_vert = sv,
         mean_horz = mh, mean_vert = mv}
   end
   local w, h, s = o.width or o.size or 3, o.height or o.size or 3, o.sigma or 0.25
   local cx, cy = (o.mean_horz or 0.5) * w + 0.5, (o.mean_vert or 0.5) * h + 0.5
   local g = torch.Tensor(h, w)
   for i = 1, h do
      for j = 1, w do
         local dx, dy = (j - cx) / ((o.sigma_horz or s) * w), (i - cy) / ((o.sigma_vert or s) * h)
         g[i][j] = (o.amplitude or 1) * math.exp(-(dx * dx + dy * dy) / 2)
      end
   end
   return o.normalize and g:div(g:sum()) or g
end

--- gaussian1D(size = 3, sigma = 0.25, amplitude = 1, normalize = false, mean = 0.5): a bell along a line.
function image.gaussian1D(o, sigma, amplitude, normalize, mean)
   if type(o) ~= 'table' then o = {size = o, sigma = sigma, amplitude = amplitude, normalize = normalize, mean = mean} end
   return image.gaussian {width = o.size or 3, height = 1, sigma = o.sigma, sigma_vert = 1, amplitude = o.amplitude, normalize = o.normalize,
      mean_horz = o.mean}[1]
end

--- convolve([dst,] src, kernel [, 'full', 'valid' or 'same']): each plane with the kernel.
function image.convolve(...)
   local args = {...}
   local dst = torch.isTensor(args[3]) and table.remove(args, 1) or nil
   local src, kernel, mode = args[1], args[2], args[3] or 'valid'
   if kernel:dim() == 2 and src:dim() == 3 then kernel = kernel:view(1, kernel:size(1), kernel:size(2)):expand(src:size(1), kernel:size(1), kernel:size(2)) end
   local r = torch.conv2(src, kernel, mode == 'valid' and 'V' or 'F')
   if mode == 'same' then
      local kw, kh = kernel:size(kernel:dim()), kernel:size(kernel:dim() - 1)
      r = r:narrow(r:dim(), math.ceil((kw + 1) / 2), src:size(src:dim())):narrow(r:dim() - 1, math.ceil((kh + 1) / 2), src:size(src:dim() - 1)):contiguous()
   end
   return dst and dst:resize(r:size()):copy(r) or r
end

return image
