-- IDX: reads MNIST's files of unsigned bytes, plain or gzipped (file -> ByteTensor).
local ffi = require 'ffi'
local torch = require 'torch'

local function readAll(path)
   local file = io.open(path, 'rb')
   if not file then error(('[idx] no such file; got %s, need an IDX file'):format(path), 3) end
   if not path:match '%.gz$' then
      local bytes = file:read '*a'
      file:close()
      return bytes
   end
   file:close()
   local pipe = assert(io.popen(("gzip -dc '%s'"):format(path:gsub("'", "'\\''")), 'r'))
   local bytes = pipe:read '*a'
   pipe:close()
   if #bytes == 0 then error(('[idx] gzip gave nothing; got %s, need the program gzip and an intact .gz file'):format(path), 3) end
   return bytes
end

local function word(bytes, at)
   local a, b, c, d = bytes:byte(at, at + 3)
   return ((a * 256 + b) * 256 + c) * 256 + d
end

--- Reads one IDX file of unsigned bytes.
-- @param path  name of the file, `.gz` allowed
-- @return ByteTensor of the sizes the file declares
local function idx(path)
   local bytes = readAll(path)
   if #bytes < 4 or bytes:sub(1, 3) ~= '\0\0\8' then
      error(('[idx] not an IDX file of bytes; got %s, need magic number 0x000008nn'):format(path), 2)
   end
   local rank, sizes, count = bytes:byte(4), {}, 1
   if #bytes < 4 + 4 * rank then
      error(('[idx] header is cut off; got %d bytes in %s, need %d'):format(#bytes, path, 4 + 4 * rank), 2)
   end
   for d = 1, rank do
      sizes[d] = word(bytes, 1 + 4 * d)
      count = count * sizes[d]
   end
   if #bytes ~= 4 + 4 * rank + count then
      error(('[idx] size does not match the header; got %d bytes in %s, need %d'):format(#bytes, path, 4 + 4 * rank + count), 2)
   end
   local tensor = torch.ByteTensor(torch.LongStorage(sizes))
   ffi.copy(tensor:data(), bytes:sub(5 + 4 * rank), count)
   return tensor
end

return idx
