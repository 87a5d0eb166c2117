-- Edges of the op table: NaN and infinities alike eager and compiled, Lua spellings of the regular forms, and the text of errors.
local C = require 'relume.core'
local ops = require 'support.ops'
local layout = require 'support.layout'
local nd = require 'support.nd'

local specials = { 0 / 0, math.huge, -math.huge, 0, -0.0, 1, -1, 0.5, 1e30, -1e30, 1e-30, 88, -88, 710, -710, 3e38 }

local function pairsOfSpecials(row)
   local inputs, n = {}, #specials
   for k = 1, row.nin do
      local t = ops.inputType(row, k, 'Float')
      inputs[k] = nd.new({ n * n }, function(i)
         local v = specials[k == 1 and (i - 1) % n + 1 or math.floor((i - 1) / n) % n + 1]
         return t == 'Float' and v or i % 2
      end)
      inputs[k].dtype = t
   end
   return inputs
end

local function alike(a, b)
   if a ~= a or b ~= b then return a ~= a and b ~= b end
   if a == b then return true end
   return math.abs(a - b) <= 1e-5 * math.abs(a) + 1e-37
end

describe('elementwise op on NaN and infinities', function()
   for _, row in ipairs(ops.rows) do
      if row.kind == 'EW' and row.types ~= 'int' and row.name ~= 'cast' then
         it(row.name .. ' is alike eager and compiled', function()
            local case = { row = row, inputs = {}, attrs = ops.attributes(row)[1], n = row.nin }
            for k, a in ipairs(pairsOfSpecials(row)) do case.inputs[k] = layout.tensor(a, a.dtype) end
            local eager, compiled = layout.array(ops.eager(case)[1]), layout.array(ops.compiled({ case }, { strict = true })[1][1])
            for i = 1, eager.n do
               assert.is_true(alike(eager[i], compiled[i]), ('%s of %s: eager %g, compiled %g'):format(row.name, tostring(specials[(i - 1) % #specials + 1]),
                  eager[i], compiled[i]))
            end
         end)
      end
   end
end)

-- Names that a row binds with a form.
local function spellings(row, form)
   local list = {}
   if type(row.lua) == 'table' then
      for name, f in pairs(row.lua) do
         if f == form then list[#list + 1] = name end
      end
   elseif row.lua == form then
      list[1] = row.name
   end
   return list
end

describe('spelling of', function()
   for _, row in ipairs(ops.rows) do
      for _, form in ipairs { 'unary', 'binary' } do
         for _, name in ipairs(spellings(row, form)) do
            it(name, function()
               local dtype = ops.dtypes(row)[#ops.dtypes(row)]
               local lo, hi = ops.domain(row, dtype)
               local inputs = {}
               for k = 1, row.nin do inputs[k] = layout.tensor(ops.sample({ 3, 4 }, dtype, lo, hi), dtype) end
               local raw = C.op[row.name](unpack(inputs))
               assert.near(torch[name](unpack(inputs)), raw, 1e-12)
               local res = inputs[1].new()
               assert.equal(res, torch[name](res, unpack(inputs)))
               assert.near(res, raw, 1e-12)
               local x = inputs[1]:clone()
               assert.equal(x, x[name](x, unpack(inputs, 2)))
               assert.near(x, raw, 1e-12)
            end)
         end
      end
   end
end)

describe('error of', function()
   local a, b = torch.FloatTensor(2, 3):fill(1), torch.FloatTensor(4, 5):fill(1)

   local function message(f, ...)
      local ok, err = pcall(f, ...)
      assert.is_false(ok)
      return tostring(err)
   end

   it('shapes that do not broadcast names both', function()
      local text = message(C.op.add, a, b)
      assert.truthy(text:find '%[add%]')
      assert.truthy(text:find '2x3')
      assert.truthy(text:find '4x5')
   end)

   it('mixed dtypes names both', function()
      local text = message(C.op.mul, a, torch.DoubleTensor(2, 3):fill(1))
      assert.truthy(text:find '%[mul%]')
      assert.truthy(text:find 'Float')
      assert.truthy(text:find 'Double')
   end)

   it('a float op on integers names the dtype', function()
      local text = message(C.op.exp, torch.LongTensor(3):fill(1))
      assert.truthy(text:find '%[exp%]')
      assert.truthy(text:find 'Long')
   end)

   it('a dimension out of range', function()
      assert.truthy(message(C.op.softmax, a, 2):find '%[softmax%]')
      assert.truthy(message(C.op.sum, a, { 5 }, false):find '%[sum%]')
   end)

   it('an index out of range names it and where it stands, as Lua counts', function()
      local text = message(C.op.index_select, a, torch.LongTensor { 0, 7 }, 0)
      assert.truthy(text:find '%[index_select%]')
      assert.truthy(text:find('got 8 at element 2, need 1 to 2', 1, true))
   end)

   it('products of matrices that do not fit names both', function()
      local text = message(C.op.matmul, a, b)
      assert.truthy(text:find '2x3')
      assert.truthy(text:find '4x5')
   end)

   it('a class out of range names it', function()
      local text = message(C.op.nll_loss, a, torch.LongTensor { 0, 3 })
      assert.truthy(text:find '%[nll_loss%]')
      assert.truthy(text:find '3')
   end)
end)
