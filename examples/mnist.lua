-- Trains on handwritten digits, eager or compiled: one training step is one closure, and --compile is one line.
-- luajit examples/mnist.lua --model lenet --epochs 4 --compile
local root = dofile((arg[0]:match '^(.*)examples/' or '') .. 'examples/paths.lua')
local ffi = require 'ffi'
require 'torch'
require 'nn'
require 'optim'
local digits, json = require 'digits', require 'json'

local opt = require 'options' ('luajit examples/mnist.lua [options]', {
   { 'model', 'lenet', 'mlp or lenet', { 'mlp', 'lenet' } },
   { 'epochs', 4, 'passes over the training digits', 0 },
   { 'batch', 64, 'digits a step', 1 },
   { 'lr', 0.05, 'learning rate' },
   { 'seed', 1, 'seed of weights, batches and masks' },
   { 'compile', false, 'torch.compile the training step' },
   { 'gpu', false, 'train on a GPU' },
   { 'data', root .. 'examples/data', 'folder of the four IDX files' },
   { 'json', '', 'write the results to this file', 'file' },
   { 'save', '', 'write the trained network to this .t7 file', 'file' },
})

local models = {}

function models.mlp()
   return nn.Sequential()
      :add(nn.View(784))
      :add(nn.Linear(784, 256)):add(nn.ReLU()):add(nn.Dropout(0.2))
      :add(nn.Linear(256, 10)):add(nn.LogSoftMax())
end

function models.lenet()
   return nn.Sequential()
      :add(nn.SpatialConvolution(1, 16, 5, 5)):add(nn.ReLU()):add(nn.SpatialMaxPooling(2, 2))
      :add(nn.SpatialConvolution(16, 32, 5, 5)):add(nn.ReLU()):add(nn.SpatialMaxPooling(2, 2))
      :add(nn.View(512))
      :add(nn.Linear(512, 128)):add(nn.ReLU()):add(nn.Dropout(0.2))
      :add(nn.Linear(128, 10)):add(nn.LogSoftMax())
end

torch.setdefaulttensortype 'torch.FloatTensor'
torch.manualSeed(opt.seed)
local function load(part)
   local ok, images, labels = pcall(digits.load, opt.data, part)
   if not ok then opt.die((images:gsub('^.-:%d+: ', ''))) end
   return images, labels
end
local trainX, trainY = load 'train'
local testX, testY = load 'test'
if opt.batch > trainX:size(1) then opt.die(('option --batch needs at most %d, got %d'):format(trainX:size(1), opt.batch)) end
local net, criterion = models[opt.model](), nn.ClassNLLCriterion()
if opt.gpu then
   require 'cunn'
   net, criterion = net:cuda(), criterion:cuda()
   trainX, testX = trainX:cuda(), testX:cuda()
   trainY, testY = trainY:type 'torch.CudaLongTensor', testY:type 'torch.CudaLongTensor'
end
local params, grads = net:getParameters()
local state = { learningRate = opt.lr, momentum = 0.9, dampening = 0 }

-- One training step: everything that happens for a batch.
local function step(x, y)
   local function feval()
      grads:zero()
      local out = net:forward(x)
      local loss = criterion:forward(out, y)
      net:backward(x, criterion:backward(out, y))
      return loss, grads
   end
   local _, losses = optim.sgd(feval, params, state)
   return losses[1]
end

local train = opt.compile and torch.compile(step) or step

local clock, median = torch.Timer(), function(list)
   local sorted = {}
   for i, v in ipairs(list) do sorted[i] = v end
   table.sort(sorted)
   return sorted[math.ceil(#sorted / 2)] or 0
end

local function accuracy(images, labels)
   net:evaluate()
   local right = 0
   for first = 1, images:size(1), 500 do
      local n = math.min(500, images:size(1) - first + 1)
      local _, guess = net:forward(images:narrow(1, first, n)):max(2)
      right = right + guess:view(n):eq(labels:narrow(1, first, n)):sum()
   end
   net:training()
   return right / images:size(1)
end

ffi.cdef 'int isatty(int);'
local tty = ffi.C.isatty(1) == 1
local function progress(epoch, done, total, loss, rate, left)
   io.write(('%sepoch %d/%d  step %d/%d  loss %.4f  %.0f digits/s  %ds left   %s')
      :format(tty and '\r' or '', epoch, opt.epochs, done, total, loss, rate, math.ceil(left), tty and '' or '\n'))
   io.flush()
end

local perEpoch = math.floor(trainX:size(1) / opt.batch)
local losses, times, x, y = json.array {}, {}, nil, nil
net:training()
for epoch = 1, opt.epochs do
   local order = torch.randperm(trainX:size(1)):type(opt.gpu and 'torch.CudaLongTensor' or 'torch.LongTensor')
   local shown, sum = clock:time().real, 0
   for i = 1, perEpoch do
      local pick = order:narrow(1, (i - 1) * opt.batch + 1, opt.batch)
      x, y = trainX:index(1, pick), trainY:index(1, pick)
      local start = clock:time().real
      local loss = train(x, y)
      local now = clock:time().real
      losses[#losses + 1], times[#times + 1] = loss, (now - start) * 1e3
      sum = sum + loss
      if i == perEpoch or tty and now - shown > 0.2 or now - shown > 10 then
         local ms, left = median(times), (opt.epochs - epoch) * perEpoch + perEpoch - i
         progress(epoch, i, perEpoch, sum / i, opt.batch / ms * 1e3, left * ms / 1e3)
         shown = now
      end
   end
   if tty then io.write '\n' end
end

local report = { graphs = 0, breaks = 0 }
if opt.compile and x then report = torch.explain(train, x, y) end
local result = {
   model = opt.model, compile = opt.compile, seed = opt.seed,
   accuracy = accuracy(testX, testY), loss = losses[#losses], step_ms = median(times),
   graphs = report.graphs, breaks = report.breaks, losses = losses,
}
print(('%s %s: test accuracy %.2f %%, loss %.4f, median step %.2f ms, graphs %d, breaks %d'):format(opt.model,
   opt.compile and 'compiled' or 'eager', result.accuracy * 100, result.loss or 0, result.step_ms, result.graphs, result.breaks))
if opt.json ~= '' then json.save(opt.json, result) end
if opt.save ~= '' then torch.save(opt.save, net:clearState()) end
