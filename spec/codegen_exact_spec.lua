-- Generated code rounds as eager kernels do: every elementwise row on special values, chains that a fused multiply-add would change, half types
-- under strict. The C library's vector functions differ from its scalar ones in the last places, so rows over them have a tolerance.
local C = require 'relume.core'
local torch = require 'torch'
local ops = require 'support.ops'
local layout = require 'support.layout'
local nd = require 'support.nd'
local plan = require 'support.plan'

local specials = {
   int = { 0, 1, 2, 3, 7, 100, 127, 128, 200, 255, -1, -2, -3, -7, -100, -128, 32767, -32768, 2147483647, -2147483648 },
   float = { 0 / 0, math.huge, -math.huge, 0, -0.0, 1, -1, 0.5, 2.5, -7.3, 1e-3, 1e30, -1e30, 1e-30, 1e-42, 88.5, -103, 65504, 3.3e38 },
}

-- Inputs of a row: all pairs of special values, further operands cyclic.
local function inputs(row, dtype)
   local out = {}
   for k = 1, row.nin do
      local t = ops.inputType(row, k, dtype)
      local list = ops.kind(t).int and specials.int or specials.float
      local n = #specials.int
      local a = nd.new({ n * n }, function(i)
         local at = k == 1 and (i - 1) % n or k == 2 and math.floor((i - 1) / n) or i * k
         if row.ins[k].type == 'byte' then return at % 2 end
         return list[at % #list + 1]
      end)
      out[k] = layout.tensor(a, t)
   end
   return out
end

local libm = { 'sin', 'cos', 'tan', 'pow', 'log1p', 'expm1', 'erfc', 'lgamma', 'shl', 'shr' }
local own = { 'exp', 'log', 'tanh', 'sigmoid', 'erf' } -- the prelude's own polynomials in float

-- Relative difference that a row may show: none where no library function is called.
local function tolerance(row, dtype)
   local k = ops.kind(dtype)
   if k.int then return 0 end
   local function calls(names)
      for _, name in ipairs(names) do
         if row.expr:find(name) then return true end
      end
   end
   return (calls(libm) or dtype == 'Double' and calls(own)) and 8 * k.eps or 0
end

local function equal(a, b, what, tol)
   for i = 1, a:nElement() do
      local x, y = a[i], b[i]
      local same = x == y or x ~= x and y ~= y or math.abs(x - y) <= (tol or 0) * math.max(1, math.abs(x))
      if not same then error(('%s, element %d: eager %.17g, compiled %.17g'):format(what, i, x, y)) end
   end
end

describe('generated code equals eager bit for bit', function()
   for _, dtype in ipairs{ 'Byte', 'Char', 'Short', 'Int', 'Long', 'Half', 'BFloat16', 'Float', 'Double' } do
      it('every elementwise row on special values, ' .. dtype, function()
         local calls, flat = {}, {}
         for _, row in ipairs(ops.rows) do
            local takes = false
            for _, t in ipairs(ops.dtypes(row)) do takes = takes or t == dtype end
            if row.kind == 'EW' and row.name ~= 'cast' and takes then
               local call = { row = row, inputs = inputs(row, dtype), attrs = ops.attributes(row)[1], at = #flat }
               for _, t in ipairs(call.inputs) do flat[#flat + 1] = t end
               calls[#calls + 1] = call
            end
         end
         local function all(...)
            local given, out = { ... }, {}
            for _, call in ipairs(calls) do
               local arg = {}
               for k = 1, #call.inputs do arg[k] = given[call.at + k] end
               for _, v in ipairs(call.attrs) do arg[#arg + 1] = v end
               out[#out + 1] = C.op[call.row.name](unpack(arg))
            end
            return unpack(out)
         end
         local eager = { all(unpack(flat)) }
         local compiled = { plan.graph(all, flat):compile{ strict = true }:run(flat) }
         for i, call in ipairs(calls) do equal(eager[i]:double(), compiled[i]:double(), call.row.name .. ' of ' .. dtype, tolerance(call.row, dtype)) end
         assert.is_true(#calls > 10)
      end)
   end
   it('products and sums, remainders, random normals', function()
      local function f(x, y, n)
         return C.op.sub(C.op.mul(x, y), C.op.mul(y, n)), C.op.add(C.op.mul(x, x), C.op.mul(y, -1.1)), C.op.remainder(C.op.mul(x, 1e30), C.op.add(y, 3)),
            C.op.mul(C.op.randn({ 500 }, 'Float'), x), C.op.exp(C.op.mul(x, y))
      end
      local x, y = torch.randn(500):float(), torch.randn(500):float()
      x[1], y[1] = 3e38, 3e38
      torch.manualSeed(3)
      local eager = { f(x, y, 0.3) }
      torch.manualSeed(3)
      local compiled = { plan.graph(f, { x, y }, { 0.3 }):compile():run({ x, y }, { 0.3 }) }
      for i = 1, #eager do equal(eager[i]:double(), compiled[i]:double(), 'chain ' .. i) end
   end)
   for _, dtype in ipairs{ 'Half', 'BFloat16' } do
      it('strict rounds ' .. dtype .. ' between ops; default keeps floats', function()
         local function f(x, y) return C.op.sub(C.op.mul(x, y), C.op.mul(y, 0.3)), C.op.sum(C.op.mul(C.op.add(x, y), y), { 1 }, true) end
         local t = ('torch.%sTensor'):format(dtype)
         local x, y = torch.randn(40, 1):type(t), torch.randn(40, 1):type(t)
         local eager, g = { f(x, y) }, plan.graph(f, { x, y })
         local strict, default = { g:compile{ strict = true }:run{ x, y } }, { g:compile():run{ x, y } }
         for i = 1, 2 do equal(eager[i]:double():view(-1), strict[i]:double():view(-1), 'strict ' .. i) end
         assert.is_true((default[1]:double() - eager[1]:double()):abs():max() > 0)
      end)
   end
end)
