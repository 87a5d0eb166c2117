-- image: files of each format, transforms against loops, colours there and back, broken files.
require 'helper'
local image = require 'image'

local function picture(c, h, w)
   torch.manualSeed(c * 100 + h * 10 + w)
   return torch.rand(c, h, w)
end

local function message(f, ...)
   local ok, err = pcall(f, ...)
   assert.is_false(ok)
   return tostring(err)
end

local name = os.tmpname()
local function file(ending) return name .. '.' .. ending end

describe('image files', function()
   teardown(function()
      for _, ending in ipairs { 'png', 'ppm', 'jpg' } do os.remove(file(ending)) end
      os.remove(name)
   end)

   it('PNG with 1 to 4 channels', function()
      for c = 1, 4 do
         local x = picture(c, 5, 7)
         image.save(file 'png', x)
         local y = image.load(file 'png')
         assert.same({ c, 5, 7 }, y:size():totable())
         assert.is_true((x - y):abs():max() <= 0.5 / 255 + 1e-9)
         image.save(file 'png', y)
         assert.near(image.load(file 'png'), y, 0)
      end
   end)

   it('channels and types asked for', function()
      local x = picture(3, 4, 6)
      image.save(file 'png', x)
      local gray, bytes = image.load(file 'png', 1, 'float'), image.load(file 'png', 3, 'byte')
      assert.equal('torch.FloatTensor', gray:type())
      assert.same({ 1, 4, 6 }, gray:size():totable())
      assert.near(gray:double(), image.rgb2y(x), 5e-3)
      assert.equal('torch.ByteTensor', bytes:type())
      image.save(file 'png', x[1])
      assert.same({ 3, 4, 6 }, image.load(file 'png', 3):size():totable())
      assert.same({ 1, 4, 6 }, image.getSize(file 'png'):totable())
   end)

   it('PPM and PGM', function()
      for _, c in ipairs { 1, 3 } do
         local x = picture(c, 3, 4)
         image.save(file 'ppm', x)
         assert.is_true((x - image.load(file 'ppm')):abs():max() <= 0.5 / 255 + 1e-9)
      end
   end)

   it('JPEG, or the name of the package that it needs', function()
      local x = torch.linspace(0, 1, 64):view(1, 1, 64):expand(3, 64, 64):clone() -- smooth, as photographs are
      local ok, why = pcall(image.save, file 'jpg', x, 95)
      if not ok then return assert.truthy(why:find('need the package libturbojpeg0', 1, true)) end
      assert.is_true((x - image.load(file 'jpg')):abs():mean() < 0.02)
      assert.same({ 1, 64, 64 }, image.load(file 'jpg', 1):size():totable())
      local bytes = image.compressJPG(x[1], 90)
      assert.same({ 1, 64, 64 }, image.decompressJPG(bytes):size():totable())
   end)

   it('bytes in tensors', function()
      local x = image.load((function() image.save(file 'png', picture(3, 4, 4)) return file 'png' end)(), 3, 'byte')
      local bytes = image.compressPNG(x)
      assert.equal('torch.ByteTensor', bytes:type())
      assert.near(image.decompress(bytes, 3, 'byte'), x, 0)
   end)

   it('broken files are errors', function()
      image.save(file 'png', picture(3, 8, 8))
      local f = io.open(file 'png', 'rb')
      local bytes = f:read '*a'
      f:close()
      for _, text in ipairs { '', 'hello', bytes:sub(1, 20), bytes:sub(1, -30), 'P6\n3 3\n255\nab', 'P5\n99999999 99999999\n255\n', 'P6\nx' } do
         f = io.open(file 'png', 'wb')
         f:write(text)
         f:close()
         assert.truthy(message(image.load, file 'png'):find '%[image')
      end
      assert.truthy(message(image.load, '/no/such/file.png'):find 'need one that can be read')
      assert.truthy(message(image.save, '/tmp/x.gif', picture(3, 2, 2)):find 'need one that ends in')
   end)
end)

describe('image', function()
   it('scales', function()
      local x = torch.range(1, 16):view(1, 4, 4)
      assert.near(image.scale(x, 2, 2), torch.Tensor { { { 3.5, 5.5 }, { 11.5, 13.5 } } }, 1e-12) -- means of what they cover
      assert.near(image.scale(x, 7, 4)[1][1], torch.range(1, 4, 0.5), 1e-12)
      assert.near(image.scale(x, 2, 2, 'simple'), torch.Tensor { { { 1, 3 }, { 9, 11 } } }, 0)
      assert.near(image.scale(x, 7, 4, 'bicubic')[1][1], torch.range(1, 4, 0.5), 1e-9) -- a line stays one
      assert.near(image.scale(x[1], 3, 3):sum(), x:mean() * 9, 1e-9)
      assert.same({ 3, 10, 20 }, image.scale(picture(3, 20, 40), 20):size():totable())
      assert.same({ 3, 20, 40 }, image.scale(picture(3, 20, 40), '^20'):size():totable())
      assert.same({ 3, 5, 10 }, image.scale(picture(3, 20, 40), '*1/4'):size():totable())
      assert.same({ 3, 7, 9 }, image.scale(picture(3, 20, 40), '9x7!'):size():totable())
      local dst = torch.Tensor(1, 2, 2)
      assert.equal(dst, image.scale(dst, x))
      assert.equal('torch.ByteTensor', image.scale(x:byte(), 2, 2):type())
      assert.truthy(message(image.scale, x, 2, 2, 'best'):find 'mode; got best')
   end)

   it('crops, flips, translates, rotates', function()
      local x = torch.range(1, 12):view(1, 3, 4)
      assert.near(image.crop(x, 1, 0, 3, 2), torch.Tensor { { { 2, 3 }, { 6, 7 } } }, 0)
      assert.near(image.crop(x, 'br', 2, 1), torch.Tensor { { { 11, 12 } } }, 0)
      assert.near(image.crop(x, 'c', 2, 1), torch.Tensor { { { 6, 7 } } }, 0)
      assert.truthy(message(image.crop, x, 0, 0, 9, 9):find 'need one inside 4x3')
      assert.near(image.hflip(x)[1][1], torch.Tensor { 4, 3, 2, 1 }, 0)
      assert.near(image.vflip(x)[1]:select(2, 1), torch.Tensor { 9, 5, 1 }, 0)
      assert.near(image.translate(x, 1, 1), torch.Tensor { { { 0, 0, 0, 0 }, { 0, 1, 2, 3 }, { 0, 5, 6, 7 } } }, 0)
      local square = picture(2, 5, 5)
      assert.near(image.rotate(square, 0, 'bilinear'), square, 1e-12)
      assert.near(image.rotate(image.rotate(square, math.pi / 2), -math.pi / 2), square, 1e-12)
      assert.near(image.rotate(square, math.pi), image.hflip(image.vflip(square)), 1e-12)
   end)

   it('colours go there and back', function()
      local x = picture(3, 4, 5)
      assert.near(image.yuv2rgb(image.rgb2yuv(x)), x, 1e-4)
      assert.near(image.hsv2rgb(image.rgb2hsv(x)), x, 1e-12)
      assert.near(image.hsl2rgb(image.rgb2hsl(x)), x, 1e-12)
      assert.near(image.rgb2y(x)[1][2][3], 0.299 * x[1][2][3] + 0.587 * x[2][2][3] + 0.114 * x[3][2][3], 1e-12)
   end)

   it('grids, ranges, bells, display', function()
      local grid = image.toDisplayTensor { input = torch.rand(5, 1, 4, 4), nrow = 3, padding = 2 }
      assert.same({ 12, 18 }, grid:size():totable())
      assert.near(image.minmax { tensor = torch.Tensor { 2, 4, 6 } }, torch.Tensor { 0, 0.5, 1 }, 1e-12)
      local g = image.gaussian(5, 0.25, 1, true)
      assert.near(g:sum(), 1, 1e-12)
      assert.equal(g:max(), g[3][3])
      assert.same({ 7 }, image.gaussian1D(7):size():totable())
      assert.near(image.convolve(torch.ones(1, 4, 4), torch.ones(3, 3), 'same')[1][1], torch.Tensor { 4, 6, 6, 4 }, 1e-12)
      local print = _G.print
      _G.print = function() end -- luacheck: ignore 122
      local shown = image.display { image = torch.rand(3, 4, 4), outfile = file 'png' }
      _G.print = print -- luacheck: ignore 122
      assert.same({ 3, 4, 4 }, image.load(shown.file):size():totable())
      os.remove(shown.file)
   end)
end)
