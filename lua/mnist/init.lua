-- mnist: handwritten digits as the rock `mnist` gives them (folder of IDX files -> {data, label, size}).
-- The shipped digits are 10 000 of MNIST; `mnist.folder` (or the argument) may name a folder with the whole set, under its own names, .gz or not.
local idx = require 'mnist.idx'
local mnist = {idx = idx}

local here = debug.getinfo(1, 'S').source:match '^@(.*/)' or './'
local folders = {here .. 'data', here .. '../../examples/data'} -- installed; in a clone
local names = {
   train = {'train-images-idx3-ubyte', 'train-labels-idx1-ubyte'},
   test = {'t10k-images-idx3-ubyte', 't10k-labels-idx1-ubyte', 'test-images-idx3-ubyte', 'test-labels-idx1-ubyte'}}

local function exists(path)
   local file = io.open(path, 'rb')
   if file then file:close() end
   return file ~= nil
end

-- The first of the file's names that is in one of the folders.
local function find(where, part, kind)
   for _, folder in ipairs(where) do
      for i = kind, #names[part], 2 do
         for _, form in ipairs {'%s/%s', '%s/%s.gz', '%s/mnist-%s.gz'} do
            local path = form:format(folder, names[part][i])
            if exists(path) then return path end
         end
      end
   end
   error(('[mnist] no file %s; got the folder %s'):format(names[part][kind], table.concat(where, ', ')), 4)
end

local function example(dataset, i)
   if type(i) ~= 'number' then return nil end
   if i < 1 or i > dataset.size then error(('[mnist] index; got %d, need 1 to %d'):format(i, dataset.size), 2) end
   return {x = dataset.data[i], y = dataset.label[i]}
end

local function load(part, folder)
   local where = folder and {folder} or mnist.folder and {mnist.folder} or folders
   local data, label = idx(find(where, part, 1)), idx(find(where, part, 2))
   if data:size(1) ~= label:size(1) then error(('[mnist] got %d images and %d labels'):format(data:size(1), label:size(1)), 3) end
   return setmetatable({data = data, label = label, size = data:size(1)}, {__index = example})
end

--- Digits to train on: data is a ByteTensor (n, 28, 28), label a ByteTensor (n) from 0 to 9; set[i] is {x = image, y = label}.
function mnist.traindataset(folder) return load('train', folder) end

--- Digits to test on, in the same form.
function mnist.testdataset(folder) return load('test', folder) end

return mnist
