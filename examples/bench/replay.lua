-- Replay: the kernels of every workload's step, one line per launch, for comparing branches (workload files -> text).
-- luajit examples/bench/replay.lua > before.txt; on the branch, again > after.txt; diff before.txt after.txt
local root = dofile((arg[0]:match '^(.*)examples/' or '') .. 'examples/paths.lua')
require 'torch'
require 'nn'
require 'optim'

torch.setdefaulttensortype 'torch.FloatTensor'
local pipe = assert(io.popen(("ls '%sexamples/bench/workloads'"):format(root)))
for file in pipe:lines() do
   torch.manualSeed(0)
   local work = assert(loadfile(root .. 'examples/bench/workloads/' .. file))()()
   work.step() -- buffers have their sizes from the first step on
   local report = torch.explain(work.step)
   print(('%s: graphs %d, breaks %d, ops %d, kernels %d, library calls %d'):format(file:match '^(.*)%.lua$', report.graphs, report.breaks,
      report.nops, report.kernels, report.calls))
   for _, ops in ipairs(report.ops) do
      local names = {}
      for name, n in pairs(ops) do names[#names + 1] = ('   %-28s %d'):format(name, n) end
      table.sort(names)
      print(table.concat(names, '\n'))
   end
end
pipe:close()
