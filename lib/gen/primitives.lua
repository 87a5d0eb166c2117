-- Manual: the closed set of primitives that a backend receives (ops.def -> doc/primitives.md).
-- luajit lib/gen/primitives.lua doc/primitives.md
package.path = 'lib/gen/?.lua;' .. package.path
local rows = require('rows').read 'lib/ops.def'

local sections = {
   { 'EW', 'Elementwise', [[
Inputs have the result's sizes (broadcasting is an `expand` node) and one dtype (promotion is a `cast` node); `where` takes a byte mask first. The
expression is the scalar C text that eager kernels and generated code both compile, without contraction.

- NaN: arithmetic and functions pass it on. Comparisons with it give 0, `ne` gives 1; `sign` gives 0. `maximum` and `minimum` give NaN when either is.
- Infinity: as IEEE 754. `remainder` and `fmod` by 0 give NaN.
- Overflow: integers wrap in two's complement; floats go to infinity; half types compute in float and round to nearest even where they are stored.
- Integers: division truncates, and by 0 gives 0, as do `fmod` and `remainder`; the lowest number by -1 wraps. Shifts by a negative or too large
  amount give 0 (`rshift` of a negative number -1). `cast` from floats goes through int64: NaN and what does not fit give its lowest value, then
  the low bits are taken.
- Empty: nothing happens.]] },
   { 'RED', 'Reductions', [[
`dims` count from 0, none means all; `keepdim` keeps them with size 1. The order is fixed by sizes alone: the same result for any number of threads.
Sums of floats accumulate in blocks and join the blocks in double.

- NaN: passed on by all; `argmax` and `argmin` give the position of the first.
- Infinity: as IEEE 754.
- Overflow: integers wrap in their own dtype.
- Empty: `sum` 0, `prod` 1; the others refuse a dimension without elements.]] },
   { 'VIEW', 'Views', [[
No work: the node carries sizes, strides and offset inside its storage. A backend may treat all of them as one op, `select` and
`transpose` too, which also have formulas. No values, hence no special ones.]] },
   { 'RAND', 'Random', [[
Philox4x32-10 with counters: element i of a draw depends on the seed, the draw's first counter (`rng` of the node, from the graph's start) and i
alone. `rand` is in [0, 1); `randn` is finite (Box-Muller). Empty draws take no counters.]] },
   { 'PRIM', 'Kernels', [[
One kernel per device and a shape rule each; a compiler may fuse what it knows (`gather`, `index_select`, `full`, `iota`, `cat`, `reshape`) and calls
the rest.

- NaN and infinity: those that move elements keep every bit; sums follow IEEE 754; sorting counts NaN as largest, pooling lets it win.
- Overflow: integers wrap (`matmul` too). Floats accumulate in float, half types in float.
- Positions out of range are an error, never a read.
- Empty: the result is empty, or zeros where a sum has no terms (`matmul` over an empty dimension).]] },
}

local own = [[
## The graph's own kinds

| node | value |
|---|---|
| `input` `number` `tensor` | what a run is given: tensors by geometry, Lua numbers as Double of rank 0; a constant tensor |
| `const` | a number known at capture, rank 0 |
| `cast_to` | the input in the node's dtype; with the same dtype a copy into a storage of its own |
| `empty` | a storage with undefined content, all of which is written before it is read |
| `scatter_window` | input 0 with a window (sizes, strides, offset) replaced by input 1 |
| `proj` | a further result of the node before it |

A graph is pure: changes of inputs are its `updates`, pairs of an input's window and a value, done after everything is computed. No other node reaches
a backend: every compile checks it, `RELUME_CHECK=1` checks shapes, dtypes and geometry of each node too, `spec/backend_spec.lua` checks the
decomposition of every row. `examples/backend.lua` is a backend over this set in plain Lua.]]

local function escape(text) return (text:gsub('|', '\\|'):gsub('\n%s*', ' ')) end

local function signature(row)
   local parts = {}
   for _, item in ipairs(row.ins) do parts[#parts + 1] = item.name .. (item.optional and '?' or '') end
   for _, attr in ipairs(row.attrs) do parts[#parts + 1] = attr.name .. ':' .. attr.type end
   return ('%s(%s%s)'):format(row.name, table.concat(parts, ', '), row.variadic and '...' or '')
end

local function primitive(row)
   if row.kind == 'VIEW' then return true end
   if row.prim ~= nil then return row.prim end
   return row.kind ~= 'COMP'
end

local out, total = {}, 0
local function put(text) out[#out + 1] = text end
for _, section in ipairs(sections) do
   put('## ' .. section[2] .. '\n\n' .. section[3] .. '\n')
   put '| primitive | dtypes | what |'
   put '|---|---|---|'
   for _, row in ipairs(rows) do
      if row.kind == section[1] and primitive(row) then
         total = total + 1
         local text = escape(row.doc) .. (row.kind == 'EW' and (' `%s`'):format(escape(row.expr)) or '')
         put(('| `%s` | %s | %s |'):format(escape(signature(row)), row.types or 'all', text))
      end
   end
   put ''
end

local head = ([[
# Primitives

Written by `make docs` from `lib/ops.def`; edit that. The passes leave a functional graph over these %d rows and the graph's own kinds; whatever else
`ops.def` has is decomposed by its formula, so a backend that handles this page handles everything.
]]):format(total)
local file = assert(io.open(arg[1] or 'doc/primitives.md', 'w'))
file:write(head, '\n', table.concat(out, '\n'), '\n', own, '\n')
file:close()
