-- Op driver: makes the cases of a row of ops.def, runs them eager and compiled, and compares with the reference (row -> complaints).
package.path = 'lib/gen/?.lua;' .. package.path
local nd = require 'support.nd'
local layout = require 'support.layout'
local C = require 'relume.core'
local ops = {}

ops.rows = require('rows').read 'lib/ops.def'
ops.layouts = { 'contiguous', 'transposed', 'sliced', 'expanded', 'empty', 'scalar' }

local kinds = {
   Byte = { int = true, lo = 0, hi = 2 ^ 8 }, Char = { int = true, lo = -2 ^ 7, hi = 2 ^ 7 },
   Short = { int = true, lo = -2 ^ 15, hi = 2 ^ 15 }, Int = { int = true, lo = -2 ^ 31, hi = 2 ^ 31 },
   Long = { int = true, lo = -2 ^ 53, hi = 2 ^ 53 },
   Half = { eps = 2 ^ -10, most = 65504 }, BFloat16 = { eps = 2 ^ -7, most = 3.3e38 },
   Float = { eps = 2 ^ -22, most = 3.4e38 }, Double = { eps = 2 ^ -50, most = 1.7e308 },
}
local names = { all = { 'Byte', 'Char', 'Short', 'Int', 'Long', 'Half', 'BFloat16', 'Float', 'Double' },
   int = { 'Byte', 'Char', 'Short', 'Int', 'Long' }, float = { 'Half', 'BFloat16', 'Float', 'Double' } }

--- Facts about a dtype: int, lo, hi (exclusive) or eps, most.
function ops.kind(dtype)
   return kinds[dtype]
end

--- Dtypes that a row takes.
function ops.dtypes(row)
   return names[row.types or 'all'] or error(row.name .. ': unknown types ' .. tostring(row.types))
end

-- Small linear generator of its own, so that samples do not depend on what is tested.
local seed = 1
function ops.seed(s) seed = s end
function ops.uniform()
   seed = (seed * 1103515245 + 12345) % 2147483648
   return seed / 2147483648
end

--- Random array of these sizes for a dtype, inside the row's domain.
function ops.sample(size, dtype, lo, hi)
   local k = kinds[dtype]
   if k.int then
      lo, hi = math.max(math.ceil(lo), k.lo), math.min(math.floor(hi), k.hi - 1)
      if lo > hi then lo, hi = math.max(k.lo, 0), 4 end
      return nd.new(size, function() return lo + math.floor(ops.uniform() * (hi - lo + 1)) end)
   end
   return nd.new(size, function() return lo + ops.uniform() * (hi - lo) end)
end

local function domain(row, dtype)
   if row.domain then
      local lo, hi = row.domain:match '^%s*([^,]+),%s*(.-)%s*$'
      return tonumber(lo), tonumber(hi)
   end
   if kinds[dtype].int then return -9, 9 end
   return -3, 3
end
ops.domain = domain

--- Dtype of input k of a row when the op's dtype is `dtype`.
function ops.inputType(row, k, dtype)
   local declared = (row.ins[k] or row.ins[#row.ins]).type
   if declared == 'byte' then return 'Byte' elseif declared == 'long' then return 'Long'
   elseif declared == 'float' then return 'Float' elseif declared == 'double' then return 'Double' end
   return dtype
end

--- What a value of the reference becomes in a dtype: integers wrap; floats stay, the tolerance sees to them.
function ops.store(value, dtype)
   local k = kinds[dtype]
   if not k.int or value ~= value then return value end
   local v = value < 0 and math.ceil(value) or math.floor(value)
   if dtype == 'Long' or v >= k.lo and v < k.hi then return v end -- Long samples stay where doubles are exact
   local span = k.hi - k.lo
   return (v - k.lo) % span + k.lo
end

local sizesOf = { contiguous = { 3, 4, 5 }, transposed = { 3, 4, 5 }, sliced = { 2, 3, 4 }, expanded = { 3, 4, 5 }, empty = { 2, 0, 3 }, scalar = {} }

--- Tensor of an array, its values as the dtype holds them, and the layout asked for.
function ops.tensor(a, dtype, kind)
   if kind == 'expanded' then a = layout.expandable(a) end
   local real = ({ transposed = true, sliced = true, expanded = true })[kind] and a.n > 0 and kind or 'contiguous'
   local t = layout.tensor(a, dtype, real)
   return t, layout.array(t)
end

-- Attributes by name, from the row's order.
local function byName(row, values)
   local out = {}
   for i, attr in ipairs(row.attrs) do
      local v = values[i]
      if v == nil and attr.optional then v = attr.def end
      if attr.type == 'bool' and type(v) == 'number' then v = v ~= 0 end
      out[attr.name] = v
   end
   return out
end

-- One case: tensors, attributes, and the reference's arrays.
local function newCase(row, dtype, kind, arrays, attrs, ref)
   local case = { row = row, dtype = dtype, layout = kind, inputs = {}, attrs = attrs, n = #arrays }
   local own = {}
   for k, a in ipairs(arrays) do
      if a == false then
         own[k] = false
      else
         case.inputs[k], own[k] = ops.tensor(a, a.dtype or ops.inputType(row, k, dtype), kind)
      end
   end
   case.named = byName(row, attrs)
   case.variant = 'sizes ' .. #arrays
   for _, a in ipairs(arrays) do case.variant = case.variant .. (a and ' ' .. table.concat(a.size, 'x') or ' absent') end
   for name, value in pairs(case.named) do
      case.variant = ('%s %s=%s'):format(case.variant, name, type(value) == 'table' and table.concat(value, ',') or tostring(value))
   end
   case.info = { int = kinds[dtype].int, dtype = dtype }
   case.arrays, case.ref = own, ref
   case.label = ('%s %s'):format(dtype, kind)
   return case
end

local function outType(row, case, k)
   if row.kind == 'COMP' or row.kind == 'PRIM' then return nil end
   if row.out == 'byte' then return 'Byte' elseif row.out == 'long' then return 'Long' elseif row.out == 'attr' then return case.named.dtype end
   return k == 1 and case.dtype or nil
end

local scalarRef = require 'reference.elementwise'
local foldRef = require 'reference.reduce'
local families = {}
for _, family in ipairs { 'views', 'stats', 'matrix', 'linalg', 'conv', 'norm', 'loss', 'index' } do
   for name, entry in pairs(require('reference.' .. family)) do families[name] = entry end
end

local function scalarCases(row, list)
   local f, attrLists = scalarRef[row.name], { {} }
   if row.attrs[1] then attrLists = ops.attributes(row) end
   for _, dtype in ipairs(ops.dtypes(row)) do
      for _, kind in ipairs(ops.layouts) do
         for _, attrs in ipairs(attrLists) do
            local arrays = {}
            for k = 1, row.nin do
               local t = ops.inputType(row, k, dtype)
               local lo, hi = domain(row, t)
               if t == 'Byte' and row.ins[k].type == 'byte' then lo, hi = 0, 1 end
               arrays[k] = ops.sample(sizesOf[kind], t, lo, hi)
               if row.opkind == 'EW2' and k == 2 and kind == 'contiguous' then arrays[k] = ops.sample({ 4, 1 }, t, lo, hi) end -- broadcasts
            end
            local case = newCase(row, dtype, kind, arrays, attrs)
            case.tolerance = row.name == 'lgamma' and 40 or nil -- the reference adds and subtracts logarithms of up to 18
            case.want = { nd.map(function(x, y, z, w)
               if row.nin < 4 then w = nil end
               return f(x, y, z, w, case.named, case.info)
            end, unpack(case.arrays)) }
            list[#list + 1] = case
         end
      end
   end
end

--- Attribute lists that an elementwise row is tried with: defaults, and every dtype for `dtype`.
function ops.attributes(row)
   local lists = { {} }
   for i, attr in ipairs(row.attrs) do
      local more = {}
      for _, values in ipairs(lists) do
         local tries = attr.type == 'dtype' and { 'Byte', 'Int', 'Half', 'Float', 'Double' } or attr.type == 'bool' and { false, true }
            or { attr.optional and attr.def or 2 }
         for _, v in ipairs(tries) do
            local copy = { unpack(values) }
            copy[i] = v
            more[#more + 1] = copy
         end
      end
      lists = more
   end
   return lists
end

local function foldCases(row, list)
   local tries = { { {}, false }, { { 0 }, false }, { { 1 }, true }, { { 0, 2 }, false }, { { 2 }, true } }
   for _, dtype in ipairs(ops.dtypes(row)) do
      for _, kind in ipairs(ops.layouts) do
         for _, attrs in ipairs(tries) do
            local rank = #sizesOf[kind]
            local fits = rank == 3 or #attrs[1] == 0
            if fits and not (kind == 'empty' and foldRef.needsElements[row.name]) then
               local lo, hi = domain(row, dtype)
               local case = newCase(row, dtype, kind, { ops.sample(sizesOf[kind], dtype, lo, hi) }, attrs)
               case.want = { foldRef.fold(row.name, case.arrays[1], attrs[1], attrs[2], case) }
               list[#list + 1] = case
            end
         end
      end
   end
end

local function familyCases(row, list)
   local entry = families[row.name]
   for _, dtype in ipairs(entry.dtypes or ops.dtypes(row)) do
      for _, kind in ipairs(entry.layouts or { 'contiguous', 'transposed', 'sliced' }) do
         for _, s in ipairs(entry.samples(dtype, ops)) do
            local case = newCase(row, dtype, kind, s.inputs, s.attrs or {})
            case.variadic = row.variadic
            local want = entry.ref(case.arrays, case.named, case)
            case.want = want.size and { want } or want
            case.tolerance, case.dynamic, case.differentiable = entry.tolerance, entry.dynamic, entry.differentiable
            list[#list + 1] = case
         end
      end
   end
end

--- Has the row a reference?
function ops.hasReference(row)
   if row.kind == 'EW' then return scalarRef[row.name] ~= nil end
   if row.kind == 'RED' then return foldRef[row.name] ~= nil end
   return families[row.name] ~= nil
end

--- Cases of a row: dtype x layout (x attributes), with the reference's results.
function ops.cases(row)
   ops.seed(#row.name * 7919 + row.name:byte(1))
   local list = {}
   if row.kind == 'EW' then scalarCases(row, list)
   elseif row.kind == 'RED' then foldCases(row, list)
   else familyCases(row, list) end
   return list
end

ops.family = families

--- Calls a row raw: inputs, then attributes.
function ops.call(case, inputs)
   local args, n = {}, 1
   if case.variadic then
      args[1] = inputs
   else
      for k = 1, case.row.nin do args[k] = inputs[k] or nil end
      n = case.row.nin
   end
   for i = 1, #case.row.attrs do args[n + i] = case.attrs[i] end
   return C.op[case.row.name](unpack(args, 1, n + #case.row.attrs))
end

--- Some of a row's cases that between them have every dtype, every layout and every list of attributes: what a graph of its own is built for
-- (each costs a run of the C compiler).
function ops.cover(cases)
   local seen, list = {}, {}
   ops.seed(#cases + 5)
   local order = {}
   for i in ipairs(cases) do order[i] = { ops.uniform(), i } end
   table.sort(order, function(a, b) return a[1] < b[1] end)
   for _, item in ipairs(order) do
      local case, new = cases[item[2]], false
      for _, key in ipairs { 'dtype ' .. case.dtype, 'layout ' .. case.layout, case.variant } do
         new, seen[key] = new or not seen[key], true
      end
      if new then list[#list + 1] = case end
   end
   return list
end

--- Runs a case eagerly.
function ops.eager(case)
   return { ops.call(case, case.inputs) }
end

--- Records the cases in one graph, compiles it, runs it: results by case.
function ops.compiled(cases, options)
   local g, tensors, outputs = C.graphBegin(), {}, {}
   local ok, err = pcall(function()
      for i, case in ipairs(cases) do
         local fakes = {}
         for k = 1, case.n do
            local t = case.inputs[k]
            if t then
               fakes[k] = g:input(t)
               tensors[#tensors + 1] = t
            end
         end
         local outs = { ops.call(case, fakes) }
         outputs[i] = #outs
         for _, fake in ipairs(outs) do g:output(fake) end
      end
   end)
   g:stop()
   if not ok then error(err, 0) end
   local flat, results, at = { g:compile(options or {}):run(tensors, {}) }, {}, 0
   for i = 1, #cases do
      results[i] = { unpack(flat, at + 1, at + outputs[i]) }
      at = at + outputs[i]
   end
   return results
end

--- Name of a tensor's dtype, wherever it is.
function ops.dtypeOf(t)
   local name = torch.typename(t):match 'torch%.(%w+)Tensor'
   return name == 'Cuda' and 'Float' or name:gsub('^Cuda', '')
end

local function near(got, want, tolerance)
   if got == want or got ~= got and want ~= want then return true end
   return math.abs(got - want) <= tolerance * (1 + math.abs(want))
end

-- First difference between an array and the reference, or nil.
local function differs(got, want, dtype, tolerance)
   if #got.size ~= #want.size or table.concat(got.size, 'x') ~= table.concat(want.size, 'x') then
      return ('sizes; got %s, need %s'):format(table.concat(got.size, 'x'), table.concat(want.size, 'x'))
   end
   local k = kinds[dtype]
   for i = 1, want.n do
      local w = ops.store(want[i], dtype)
      if k.most and math.abs(w) > k.most * 1.0003 and w == w then w = w > 0 and math.huge or -math.huge end
      if not near(got[i], w, k.int and 0 or tolerance * k.eps) then
         return ('element %d; got %.9g, need %.9g'):format(i, got[i], w)
      end
   end
end

--- Complaints about the results of a case; tolerance counts units of the dtype's last place. A result that the reference does not know is false.
function ops.compare(case, results, complaints)
   for k, want in ipairs(case.want) do
      local got = results[k]
      local dtype = type(got) == 'number' and case.dtype or ops.dtypeOf(got)
      local expected = outType(case.row, case, k)
      local why = expected and dtype ~= expected and ('type; got %s, need %s'):format(dtype, expected)
         or want and differs(layout.array(got), want, dtype, case.tolerance or 8)
      if why then complaints[#complaints + 1] = ('%s(%s) output %d: %s'):format(case.row.name, case.label, k, why) end
   end
end

return ops
