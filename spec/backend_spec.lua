-- The toy backend of examples/backend.lua: op rows against eager kernels, whole functions and a training step through torch.compile.
local backend = dofile 'examples/backend.lua'
local ops = require 'support.ops'
local plan = require 'support.plan'
local C = require 'relume.core'

local refuses = { lgamma = true, bitnot = true, bitand = true, bitor = true, bitxor = true, lshift = true, rshift = true }

-- Runs the calls {op, inputs, attributes} as one graph on the backend and eagerly.
local function agree(calls, tol)
   local flat, start = {}, {}
   for i, call in ipairs(calls) do
      start[i] = #flat
      for _, t in ipairs(call[2]) do flat[#flat + 1] = t end
   end
   local function all(...)
      local given, out = { ... }, {}
      for i, call in ipairs(calls) do
         local arg = {}
         for k = 1, #call[2] do arg[k] = given[start[i] + k] end
         for k = 1, call.n or #(call[3] or {}) do arg[#call[2] + k] = call[3][k] end
         out[i] = (C.op[call[1]](unpack(arg, 1, #call[2] + (call.n or #(call[3] or {})))))
      end
      return unpack(out)
   end
   local want, got = { all(unpack(flat)) }, { backend(plan.graph(all, flat))(unpack(flat)) }
   for i, call in ipairs(calls) do
      assert.equal(torch.type(want[i]), torch.type(got[i]))
      local d = plan.difference(want[i], got[i])
      assert.is_true(d <= tol, ('%s differs by %g'):format(call[1], d))
   end
end

describe('the toy backend', function()
   for _, dtype in ipairs{ 'Double', 'Float', 'Long', 'Int', 'Short', 'Char', 'Byte' } do
      it('computes the elementwise rows of ' .. dtype, function()
         local calls = {}
         for _, row in ipairs(ops.rows) do
            local takes = false
            for _, t in ipairs(ops.dtypes(row)) do takes = takes or t == dtype end
            if row.kind == 'EW' and takes and not refuses[row.name] then
               local inputs = {}
               for k = 1, row.nin do
                  local t = ops.inputType(row, k, dtype)
                  local lo, hi = ops.domain(row, t)
                  if row.ins[k].type == 'byte' then lo, hi = 0, 1 end
                  if ops.kind(dtype).int then lo, hi = 0, 3 end
                  inputs[k] = ops.tensor(ops.sample({ 3, 4 }, t, lo, hi), t, k == 1 and 'transposed' or 'contiguous')
               end
               calls[#calls + 1] = { row.name, inputs, ops.attributes(row)[1] }
            end
         end
         agree(calls, dtype == 'Double' and 1e-12 or 1e-5)
         assert.is_true(#calls > 20)
      end)
   end
   it('reduces, multiplies, gathers and joins', function()
      local x, y = torch.randn(3, 4), torch.randn(4, 5)
      local idx = torch.LongTensor{ { 0, 3 }, { 1, 1 }, { 2, 0 } }
      local calls = { { 'matmul', { x, y } }, { 'matmul', { y:t(), x:t() } }, { 'matmul', { torch.randn(2, 3, 4), torch.randn(2, 4, 2) } },
         { 'linear', { x, y:t(), torch.randn(5) } }, { 'gather', { x, idx }, { 1 } }, { 'index_select', { x, torch.LongTensor{ 2, 0, 2 } }, { 0 } },
         { 'softmax', { x }, { 0 } }, { 'log_softmax', { x }, { 1 } } }
      for _, name in ipairs{ 'sum', 'prod', 'amax', 'amin', 'argmax', 'argmin', 'mean', 'logsumexp' } do
         for _, dims in ipairs{ {}, { 0 }, { 1 } } do
            calls[#calls + 1] = { name, { x }, { dims, true } }
            calls[#calls + 1] = { name, { x:t() }, { dims, false } }
         end
      end
      agree(calls, 1e-10)
   end)
   it('runs functions and updates through torch.compile', function()
      local function f(x, w, lr)
         local y = torch.tanh(torch.mm(x, w))
         w:add(-lr, torch.mm(x:t(), y))
         return torch.cat(y:sum(2), y, 2), y:narrow(1, 1, 2):clone():fill(2), w
      end
      local c = torch.compile(f, { backend = backend, fullgraph = true })
      local x, w = torch.randn(3, 4), torch.randn(4, 2)
      local v = w:clone()
      for _, lr in ipairs{ 0.1, 0.5 } do
         local a, b, own = c(x, w, lr)
         local p, q = f(x, v, lr)
         assert.near(p, a, 1e-12)
         assert.near(q, b, 1e-12)
         assert.near(v, w, 1e-12)
         assert.equal(w, own)
      end
   end)
   it('trains a network', function()
      local function net() torch.manualSeed(2) return nn.Sequential():add(nn.Linear(4, 5)):add(nn.ReLU()):add(nn.Linear(5, 3)):add(nn.LogSoftMax()) end
      local x, y = torch.randn(6, 4), torch.LongTensor{ 1, 2, 3, 1, 2, 3 }
      local function stepper(m, opts)
         local loss = nn.ClassNLLCriterion()
         local function step()
            m:zeroGradParameters()
            local l = loss:forward(m:forward(x), y)
            m:backward(x, loss:backward(m.output, y))
            m:updateParameters(0.5)
            return l
         end
         return opts and torch.compile(step, opts) or step
      end
      local eager, compiled = stepper(net()), stepper(net(), { backend = backend, fullgraph = true })
      for _ = 1, 3 do assert.near(eager(), compiled(), 1e-10) end
   end)
   it('refuses what it does not know, and eager goes on', function()
      local x = torch.randn(2, 6)
      local ok, err = pcall(backend, plan.graph(function(v) return C.op.cumsum(v, 1) end, { x }))
      assert.is_false(ok)
      assert.truthy(err:find 'op cumsum')
   end)
end)

describe('what reaches a backend', function()
   it('is what doc/primitives.md says', function()
      local path = os.tmpname()
      assert.equal(0, os.execute('luajit lib/gen/primitives.lua ' .. path))
      local fresh, kept = assert(io.open(path)):read '*a', assert(io.open 'doc/primitives.md'):read '*a'
      os.remove(path)
      assert.equal(fresh, kept)
   end)
   it('is in the closed set for every row', function()
      local prim = {}
      for _, row in ipairs(ops.rows) do prim[row.name] = row.kind == 'VIEW' or row.prim or row.prim == nil and row.kind ~= 'COMP' end
      local own = { input = true, number = true, const = true, tensor = true, empty = true, proj = true, cast_to = true, scatter_window = true }
      for _, row in ipairs(ops.rows) do
         if ops.hasReference(row) and not row.variadic then
            local case = ops.cases(row)[1]
            if case and not case.dynamic then
               local inputs, place = {}, {}
               for k = 1, case.n do
                  if case.inputs[k] then
                     inputs[#inputs + 1] = case.inputs[k]
                     place[k] = #inputs
                  end
               end
               local g = plan.graph(function(...)
                  local arg = {}
                  for k = 1, case.n do arg[k] = place[k] and (select(place[k], ...)) or nil end
                  for k = 1, #case.attrs do arg[case.n + k] = case.attrs[k] end
                  return (C.op[row.name](unpack(arg, 1, case.n + #case.attrs)))
               end, inputs)
               for _, node in ipairs((g:walk())) do assert.is_true(own[node.op] or prim[node.op] or false, node.op .. ' of ' .. row.name) end
            end
         end
      end
   end)
end)
