-- Graph breaks: each reason of the registry is met by a program, is seen by torch.explain with its line, and leaves eager's results.

local compile = require 'relume.jit.compile'
local breaks = require 'relume.jit.breaks'
local eval = require 'relume.jit.eval'

local ones = function(...) return torch.ones(...) end

-- id -> function that returns a function and its arguments.
local programs = {}

programs['data-dependent'] = function() return function(x) if x:sum() > 1 then return x * 2 end return x end, ones(2) end
programs['needs-values'] = function() return function(x) return x:nonzero() end, ones(2) end
programs['c-function'] = function() return function(x) return x + #debug.traceback('', 1) * 0 end, ones(2) end
programs.disabled = function()
   local g = torch.compiler.disable(function(x) return x + 1 end)
   return function(x) return g(x) * 2 end, ones(2)
end
programs['side-effect'] = function() return function(x) return x * (os.time() > 0 and 2 or 3) end, ones(2) end
programs.callback = function() return function(x) return x + #(('%s'):format(function() end):sub(1, 8)) end, ones(2) end
programs.coroutine = function() return function(x) return coroutine.running() and x * 2 or x * 3 end, ones(2) end
programs['error-in-pcall'] = function() return function(x) return pcall(function() return x + ones(3) end) end, ones(2) end
programs['too-long'] = function()
   return function(x)
      local n = 0
      for _ = 1, 3e6 do n = n + 1 end
      return x + n * 0
   end, ones(2)
end
programs.escape = function() return function(x) return x + 1, ('a b'):gmatch '%a' end, ones(2) end
programs.metatable = function() return function(x) return debug.setmetatable(x * 1, getmetatable(x)) end, ones(2) end
programs['table-key'] = function() return function(o, x) return ({[o] = x})[o] + 1 end, {}, ones(2) end
programs['grad-escapes'] = function() return function(w) local y = w * 2 local v = y:view(-1) return y, v, v * 3 end, ones(2):requiresGrad(true) end
programs.history = function() return function(y) return torch.autograd.grad({torch.pow(y, 2)}, {y}, {ones(2)})[1] end, ones(2):requiresGrad(true) * 2 end
programs['backward-outside'] = function()
   local noise = nn.Identity()
   noise.compute = function(_, input) return torch.rand(input:size()) end -- its result has no gradient that could be kept
   noise.updateOutput = nn.Module.updateOutput
   return function(x) return noise:forward(x) end, ones(2)
end
programs['changing-string'] = function()
   local c = torch.compile(function(x, k)
      local name = tostring(x:sum() + k)
      return x + #name
   end)
   for k = 1, 8 do c(ones(2), 10 ^ k) end
   return c, ones(2), 3
end
programs['compile-failed'] = function() return torch.compile(function(x) return x + 1 end, {backend = function() error 'no device' end}), ones(2) end

-- The evaluator knows every instruction and raises no errors of its own: they are made here.
local function withHandler(op, handler)
   return function()
      local real = eval.handlers[op]
      eval.handlers[op] = handler
      return function(x)
         local a, b = nil, nil
         return x + 1, a, b
      end, ones(2), function() eval.handlers[op] = real end
   end
end
programs.opcode = withHandler('KNIL', nil)
programs.internal = withHandler('KNIL', function() error 'a bug' end)

local function pack(...) return {n = select('#', ...), ...} end

local function same(a, b)
   if torch.isTensor(a) and torch.isTensor(b) then return a:nElement() == b:nElement() and (a:detach():double() - b:detach():double()):abs():sum() == 0 end
   return type(a) == type(b)
end

describe('graph break', function()
   before_each(function() compile.warnings = false end)
   after_each(function() compile.warnings = true end)

   for id in pairs(breaks.reasons) do
      it(id .. ' is met, named and harmless', function()
         local make = assert(programs[id], 'no program of this spec meets it')
         local f, x, y = make()
         local restore = type(y) == 'function' and y
         if restore then y = nil end
         local raw = compile.states[f] and compile.states[f].f or f
         local ok, report = pcall(torch.explain, f, x, y)
         local c = torch.compile(f)
         torch.manualSeed(1)
         local got = pack(pcall(c, x, y))
         if restore then restore() end
         assert.is_true(ok, report)
         local found
         for _, b in ipairs(report.list) do found = found or b.id == id and b end
         assert.is_truthy(found, tostring(report))
         assert.truthy(found.where:find '%.lua:%d+$')
         assert.is_true(#found.hint > 0 and #found.reason > 0)
         torch.manualSeed(1)
         local want = pack(pcall(raw, x, y))
         assert.equal(want.n, got.n)
         for i = 1, want.n do assert.is_true(same(want[i], got[i]), 'result ' .. i) end
      end)
   end

   it('has a program for reasons that are there only, and a row in the manual', function()
      for id in pairs(programs) do assert.truthy(breaks.reasons[id], id) end
      local file = assert(io.open 'doc/breaks.md')
      local text = file:read '*a'
      file:close()
      local rows = select(2, text:gsub('\n| `', ''))
      for id in pairs(breaks.reasons) do
         rows = rows - 1
         assert.truthy(text:find(('\n| `%s` | %s |'):format(id, breaks.resumable[id] and 'yes' or 'no'), 1, true), id)
      end
      assert.equal(0, rows)
   end)

   it('is an error under fullgraph, with the sentence and the hint', function()
      for _, id in ipairs {'data-dependent', 'side-effect', 'disabled'} do
         local f, x = programs[id]()
         local ok, e = pcall(torch.compile(f, {fullgraph = true}), x)
         assert.is_false(ok)
         assert.truthy(e:find('graph break ' .. id, 1, true), e)
         assert.truthy(e:find(breaks.reasons[id][2], 1, true), e)
      end
   end)
end)
