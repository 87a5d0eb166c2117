-- Digits: reads MNIST's IDX files, plain or gzipped (file -> tensors).
require 'torch'

local digits = {}

--- Reads one IDX file of unsigned bytes; see lua/mnist.
digits.idx = require 'mnist.idx'

--- Loads one half of the data.
-- @param folder  where the four files are
-- @param part  `'train'` or `'test'`
-- @return images: FloatTensor (n, 1, 28, 28), in [0, 1]; labels: LongTensor (n), from 1 to 10
function digits.load(folder, part)
   local images = digits.idx(('%s/mnist-%s-images-idx3-ubyte.gz'):format(folder, part))
   local labels = digits.idx(('%s/mnist-%s-labels-idx1-ubyte.gz'):format(folder, part))
   local n = images:size(1)
   return images:float():div(255):view(n, 1, images:size(2), images:size(3)), labels:long():add(1)
end

return digits
