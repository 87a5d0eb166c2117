-- Graph driver: records a function, runs each stage of the passes with the interpreter, and compares with eager (function, inputs -> stages).
local C = require 'relume.core'
local assert = require 'luassert'
local graph = {}

--- Records f(fakes..., numbers...) on tensors and numbers; the results are the outputs.
function graph.record(f, tensors, numbers)
   local g, args = C.graphBegin(), {}
   local ok, err = pcall(function()
      for i, t in ipairs(tensors) do args[i] = g:input(t) end
      for _, v in ipairs(numbers or {}) do args[#args + 1] = g:number(v) end
      for _, fake in ipairs { f(unpack(args)) } do g:output(fake) end
   end)
   g:stop()
   if not ok then error(err, 0) end
   g:verify()
   return g
end

--- The graph after each pass, in order: {name, graph}.
function graph.stages(g)
   local out = { { 'record', g } }
   for _, name in ipairs { 'functionalize', 'decompose', 'fold', 'fold' } do
      local next = out[#out][2]:passes(name)
      local ok, err = pcall(next.verify, next)
      if not ok then error(name .. ': ' .. err .. '\n' .. next:print(), 0) end
      out[#out + 1] = { name, next }
   end
   return out
end

--- Runs every stage on fresh inputs from make() and compares results and changed inputs with f run eagerly. Returns the stages.
function graph.check(f, make, numbers, tolerance)
   local tensors, args = make(), {}
   for i, t in ipairs(tensors) do args[i] = t end
   for _, v in ipairs(numbers or {}) do args[#args + 1] = v end
   torch.manualSeed(17)
   local want = { f(unpack(args)) }
   local after = torch.uniform()
   local g = graph.record(f, make(), numbers)
   local stages = graph.stages(g)
   for _, stage in ipairs(stages) do
      local inputs = make()
      torch.manualSeed(17)
      local ok, err = pcall(function()
         local got = { stage[2]:run(inputs, numbers or {}) }
         assert.near(got, want, tolerance or 1e-12)
         assert.near(inputs, tensors, tolerance or 1e-12)
         assert.equal(after, torch.uniform())
      end)
      if not ok then error(('%s: %s\nrecorded\n%s\nafter %s\n%s'):format(stage[1], tostring(err), g:print(), stage[1], stage[2]:print()), 0) end
   end
   return stages
end

--- Text without indentation of the first line's block, for graphs written in specs.
function graph.parse(text)
   return C.graphParse(text)
end

return graph
