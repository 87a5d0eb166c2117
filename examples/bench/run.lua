-- Runs the benchmark workloads: median time of whole training steps, eager and compiled (workload files -> table, JSON).
-- luajit examples/bench/run.lua --only mlp,fuse --modes eager,compile --json out.json
local root = dofile((arg[0]:match '^(.*)examples/' or '') .. 'examples/paths.lua')
require 'torch'
require 'nn'
require 'optim'
local json = require 'json'

local workloads = {}
local pipe = assert(io.popen(("ls '%sexamples/bench/workloads'"):format(root)))
for file in pipe:lines() do workloads[#workloads + 1] = file:match '^(.*)%.lua$' end
pipe:close()
workloads.many = true

local opt = require 'options' ('luajit examples/bench/run.lua [options]', {
   { 'only', table.concat(workloads, ','), 'workloads, comma between', workloads },
   { 'modes', 'eager,compile', 'eager, compile', { 'eager', 'compile', many = true } },
   { 'steps', 15, 'timed steps', 1 },
   { 'warmup', 2, 'steps before the clock, after the first', 0 },
   { 'infer', false, 'forward and loss only' },
   { 'keep', false, 'compiled steps keep the output and gradInput of every module' },
   { 'cpu', false, "the process's own time instead of the clock on the wall: for one thread on a busy machine" },
   { 'serve', false, 'one workload, one mode: a line on stdin is a number of steps, the answer their times as JSON (for compare.py)' },
   { 'device', 'cpu', 'cpu or cuda', { 'cpu', 'cuda' } },
   { 'prec', 'f32', 'products and convolutions on a GPU: f32, tf32, bf16', { 'f32', 'tf32', 'bf16' } },
   { 'json', '', 'write the rows to this file', 'file' },
})

-- On a GPU: larger batches, tensors made there, five steps to a reading as launches run ahead.
local cuda = opt.device == 'cuda'
local large = {
   resnet18 = { batch = 128 }, resnet50 = { batch = 64 }, gptmini = { batch = 64 }, gpt2 = { batch = 8, length = 1024 }, bert = { batch = 32 },
   vit = { batch = 64 }, unet = { batch = 64 }, dlrm = { batch = 2048, rows = 100000 }, fuse = { rows = 8192 },
}
local cutorch = cuda and require 'cutorch'
local group = cuda and 5 or 1
if cuda then
   torch.LongTensor = torch.CudaLongTensor
   cutorch.setTF32(opt.prec == 'tf32')
end
local function sync()
   if cuda then cutorch.synchronize() end
end

local timer = torch.Timer()
local clock = opt.cpu and os.clock or function() return timer:time().real end
local function timed(step, n)
   local start = clock()
   for _ = 1, n or 1 do step() end
   sync()
   return (clock() - start) / (n or 1)
end

local function peakMiB()
   if cuda then return math.floor(cutorch.memoryStats().peak / 2 ^ 20 + 0.5) end
   local status = io.open '/proc/self/status'
   if not status then return 0 end
   local kb = tonumber(status:read '*a':match 'VmHWM:%s*(%d+)') or 0
   status:close()
   return math.floor(kb / 1024 + 0.5)
end

local function load(name, mode)
   torch.manualSeed(0)
   local file = ('%sexamples/bench/workloads/%s.lua'):format(root, name)
   local work = assert(loadfile(file))()(cuda and large[name] or nil)
   local run = opt.infer and work.infer or work.step
   local step = cuda and function() run() end or run -- on a GPU the loss stays there
   if opt.prec == 'bf16' then
      step = function() torch.autocast('BFloat16', run) end
   end
   if opt.infer then work.net:evaluate() end
   sync()
   if cuda then cutorch.resetPeakMemoryStats() end
   if mode == 'compile' then step = torch.compile(step, { outputs = opt.keep }) end
   collectgarbage()
   return step
end

local function measure(name, mode)
   local step = load(name, mode)
   local first = timed(step)
   for _ = 1, opt.warmup do step() end
   local ms = {}
   sync()
   for i = 1, opt.steps do ms[i] = timed(step, group) * 1e3 end
   table.sort(ms)
   return { workload = name, mode = mode, prec = opt.prec, device = opt.device, infer = opt.infer,
      ms = ms[math.ceil(#ms / 2)], ms_min = ms[1], mib = peakMiB(), first_s = first }
end

io.stdout:setvbuf 'line'
torch.setdefaulttensortype(cuda and 'torch.CudaTensor' or 'torch.FloatTensor')
if opt.serve then
   local step = load(opt.only, opt.modes)
   for line in io.lines() do
      local ms = json.array {}
      for i = 1, assert(tonumber(line), 'a number of steps') do ms[i] = timed(step) * 1e3 end
      print(json.encode { ms = ms, mib = peakMiB() })
      io.flush()
   end
   os.exit(0)
end
print(('%-10s %-8s %10s %10s %8s %8s'):format('workload', 'mode', 'ms', 'min', 'first s', 'MiB'))
local rows, failed = json.array {}, false
for name in opt.only:gmatch '[^,]+' do
   local eager
   for mode in opt.modes:gmatch '[^,]+' do
      local ok, row = xpcall(measure, debug.traceback, name, mode)
      if ok then
         eager = mode == 'eager' and row.ms or eager
         print(('%-10s %-8s %10.3f %10.3f %8.2f %8d%s'):format(name, mode, row.ms, row.ms_min, row.first_s, row.mib,
            mode ~= 'eager' and eager and ('   %.2fx of eager'):format(eager / row.ms) or ''))
      else
         failed, row = true, { workload = name, mode = mode, prec = opt.prec, error = row }
         print(('%-10s %-8s %s'):format(name, mode, row.error))
      end
      rows[#rows + 1] = row
      collectgarbage()
   end
end
if opt.json ~= '' then json.save(opt.json, rows) end
os.exit(failed and 1 or 0)
