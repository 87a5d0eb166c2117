-- Codecs: PNG through libpng, JPEG through libturbojpeg, both opened when first used; PPM and PGM in Lua
-- (file or bytes <-> ByteTensor of channels x height x width).
local torch = require 'torch'
local ffi = require 'ffi'
local codec = {}

ffi.cdef [[
typedef struct relume_png { void *opaque; uint32_t version, width, height, format, flags, colormap_entries, warning_or_error; char message[64]; } relume_png;
int png_image_begin_read_from_memory(relume_png *image, const void *memory, size_t size);
int png_image_finish_read(relume_png *image, const void *background, void *buffer, int32_t row_stride, void *colormap);
int png_image_write_to_memory(relume_png *image, void *memory, size_t *bytes, int to8, const void *buffer, int32_t row_stride, const void *colormap);
void png_image_free(relume_png *image);
void *tjInitDecompress(void);
void *tjInitCompress(void);
int tjDestroy(void *handle);
char *tjGetErrorStr(void);
int tjDecompressHeader3(void *handle, const unsigned char *data, unsigned long size, int *width, int *height, int *subsampling, int *colorspace);
int tjDecompress2(void *handle, const unsigned char *data, unsigned long size, unsigned char *out, int width, int pitch, int height, int format, int flags);
int tjCompress2(void *handle, const unsigned char *in, int width, int pitch, int height, int format, unsigned char **data, unsigned long *size, int sub,
   int quality, int flags);
void tjFree(unsigned char *data);
]]

local function opened(names, what, package)
   local lib
   return function()
      if lib then return lib end
      for _, name in ipairs(names) do
         local ok, found = pcall(ffi.load, name)
         if ok then
            lib = found
            return lib
         end
      end
      error(('[image] %s; got no library %s, need the package %s'):format(what, names[1], package), 0)
   end
end
local png = opened({'libpng16.so.16', 'png16', 'png'}, 'PNG', 'libpng16-16')
local jpeg = opened({'libturbojpeg.so.0', 'turbojpeg'}, 'JPEG', 'libturbojpeg0')

-- Rows of pixels (height, width, channels) to channels x height x width, and back.
local function planes(t) return t:permute(3, 1, 2):contiguous() end
local function pixels(t) return t:permute(2, 3, 1):contiguous() end

local largest = 2 ^ 28
local function check_size(what, w, h)
   if w < 1 or h < 1 or w * h > largest then error(('[image] size of the %s; got %d x %d, need 1 to 2^28 pixels'):format(what, w, h), 0) end
end

--- ByteTensor of the bytes of a PNG.
function codec.decodePNG(bytes)
   local lib, image = png(), ffi.new('relume_png')
   image.version = 1
   local function fail()
      local text = ffi.string(image.message)
      lib.png_image_free(image)
      error('[image] PNG; got ' .. text .. ', need a whole PNG file', 0)
   end
   if lib.png_image_begin_read_from_memory(image, bytes, #bytes) == 0 then fail() end
   image.format = image.format % 4 -- 8 bits: gray 0, with alpha 1, colour 2, with alpha 3
   image.flags = 4                 -- 16 bit files hold sRGB values
   local channels, w, h = image.format + 1, image.width, image.height
   check_size('PNG', w, h)
   local t = torch.ByteTensor(h, w, channels)
   if lib.png_image_finish_read(image, nil, t:data(), 0, nil) == 0 then fail() end
   return planes(t)
end

--- Bytes of a PNG of a ByteTensor with 1 to 4 channels.
function codec.encodePNG(t)
   local lib, image, rows, size = png(), ffi.new('relume_png'), pixels(t), ffi.new('size_t[1]')
   image.version, image.width, image.height, image.format = 1, t:size(3), t:size(2), t:size(1) - 1
   local function write(memory) return lib.png_image_write_to_memory(image, memory, size, 0, rows:data(), 0, nil) ~= 0 end
   if not write(nil) then error('[image] PNG; got ' .. ffi.string(image.message) .. ', need an image', 0) end
   local buffer = ffi.new('char[?]', tonumber(size[0]))
   if not write(buffer) then error('[image] PNG; got ' .. ffi.string(image.message) .. ', need an image', 0) end
   return ffi.string(buffer, size[0])
end

local function jpeg_error(lib, handle)
   local text = ffi.string(lib.tjGetErrorStr())
   lib.tjDestroy(handle)
   error('[image] JPEG; got ' .. text .. ', need a whole JPEG file', 0)
end

--- ByteTensor of the bytes of a JPEG: 1 channel when it is gray, else 3.
function codec.decodeJPG(bytes)
   local lib, info = jpeg(), ffi.new('int[4]')
   local handle = lib.tjInitDecompress()
   if lib.tjDecompressHeader3(handle, bytes, #bytes, info, info + 1, info + 2, info + 3) ~= 0 then jpeg_error(lib, handle) end
   local w, h, gray = info[0], info[1], info[3] == 2
   check_size('JPEG', w, h)
   local t = torch.ByteTensor(h, w, gray and 1 or 3)
   if lib.tjDecompress2(handle, bytes, #bytes, t:data(), w, 0, h, gray and 6 or 0, 0) ~= 0 then jpeg_error(lib, handle) end
   lib.tjDestroy(handle)
   return planes(t)
end

--- Bytes of a JPEG of a ByteTensor with 1 or 3 channels; quality 0 to 100.
function codec.encodeJPG(t, quality)
   local lib, rows, gray = jpeg(), pixels(t), t:size(1) == 1
   local handle, data, size = lib.tjInitCompress(), ffi.new('unsigned char *[1]'), ffi.new('unsigned long[1]')
   if lib.tjCompress2(handle, rows:data(), t:size(3), 0, t:size(2), gray and 6 or 0, data, size, gray and 3 or 2, quality or 75, 0) ~= 0 then
      jpeg_error(lib, handle)
   end
   local bytes = ffi.string(data[0], size[0])
   lib.tjFree(data[0])
   lib.tjDestroy(handle)
   return bytes
end

--- ByteTensor of a PPM or PGM, binary or as text.
function codec.decodePPM(bytes)
   local at = 3
   local function number()
      while true do
         at = bytes:find('%S', at) or #bytes + 1
         if bytes:sub(at, at) ~= '#' then break end
         at = bytes:find('\n', at, true) or #bytes + 1
      end
      local text = bytes:match('^%d+', at)
      if not text then error('[image] PPM; got a broken header, need sizes and a maximum', 0) end
      at = at + #text
      return tonumber(text)
   end
   local kind = bytes:match '^P([2356])'
   if not kind then error('[image] PPM; got another file, need P2, P3, P5 or P6', 0) end
   local w, h, most = number(), number(), number()
   check_size('PPM', w, h)
   local channels = (kind == '3' or kind == '6') and 3 or 1
   local n, t = w * h * channels, torch.ByteTensor(h, w, channels)
   local p = t:data()
   if kind == '2' or kind == '3' then
      for i = 0, n - 1 do p[i] = math.floor(number() * 255 / most) end
   else
      at = at + 1
      if most > 255 or #bytes - at + 1 < n then error('[image] PPM; got too few bytes or 16 bits, need 8 bits a sample', 0) end
      ffi.copy(p, bytes:sub(at, at + n - 1), n)
   end
   return planes(t)
end

--- Bytes of a PPM (3 channels) or PGM (1 channel).
function codec.encodePPM(t)
   local rows = pixels(t)
   return ('P%d\n%d %d\n255\n'):format(t:size(1) == 1 and 5 or 6, t:size(3), t:size(2)) .. ffi.string(rows:data(), rows:nElement())
end

return codec
