-- Manual: one line per op (ops.def -> doc/ops.md).
-- luajit lib/gen/docs.lua doc/ops.md
package.path = 'lib/gen/?.lua;' .. package.path
local rows = require('rows').read 'lib/ops.def'

local titles = {
   { 'EW', 'Elementwise', 'Inputs broadcast. `expression` is the scalar C text that every kernel compiles.' },
   { 'RED', 'Reductions', '`dims` count from 0; none means all. `keepdim` keeps them with size 1.' },
   { 'VIEW', 'Movement', 'Views share their input\'s storage.' },
   { 'RAND', 'Random', 'Draws are counter-based (Philox4x32-10) and take their counters in program order.' },
   { 'COMP', 'Composites', 'Formulas over other ops; eager may have a kernel of its own.' },
   { 'PRIM', 'Opaque kernels', 'One kernel per device and a shape rule each.' },
}

local function names(list)
   local out = {}
   for i, item in ipairs(list) do
      out[i] = type(item) == 'table' and item.name .. (item.optional and '?' or '') or item
   end
   return out
end

local function spelling(row)
   local list = {}
   if type(row.lua) == 'table' then
      for name in pairs(row.lua) do list[#list + 1] = '`torch.' .. name .. '`' end
      table.sort(list)
   elseif row.lua and row.lua ~= '' then
      list[1] = '`torch.' .. row.name .. '`'
   end
   return table.concat(list, ', ')
end

local function signature(row)
   local parts = names(row.ins)
   for _, attr in ipairs(row.attrs) do
      parts[#parts + 1] = attr.name .. ':' .. attr.type .. (attr.optional and '=' .. tostring(attr.def) or '')
   end
   return ('%s(%s%s)'):format(row.name, table.concat(parts, ', '), row.variadic and '...' or '')
end

local function gradient(row)
   if row.grad == false then return 'none' end
   if row.grad or row.cgrad then return row.smooth and 'yes, smooth' or 'yes' end
   return row.kind == 'COMP' and 'through the formula' or 'none'
end

local function escape(text)
   return (text:gsub('|', '\\|'):gsub('\n%s*', ' '))
end

local out = { '# Ops', '', 'Written by `make docs` from `lib/ops.def`; edit that. Every op is also callable raw, as',
   '`require(\'relume.core\').op.NAME(inputs..., attributes...)` with dimensions counted from 0.', '' }
local function put(text, ...) out[#out + 1] = text:format(...) end
for _, title in ipairs(titles) do
   put('## %s', title[2])
   put ''
   put('%s', title[3])
   put ''
   put '| op | Lua | dtypes | gradient | what |'
   put '|---|---|---|---|---|'
   for _, row in ipairs(rows) do
      if row.kind == title[1] then
         local text = row.kind == 'EW' and row.expr or row.formula
         text = escape(row.doc) .. (text and (' `%s`'):format(escape(text)) or '')
         put('| `%s` | %s | %s | %s | %s |', escape(signature(row)), spelling(row), row.types or 'all', gradient(row), text)
      end
   end
   put ''
end

local file = assert(io.open(arg[1] or 'doc/ops.md', 'w'))
file:write(table.concat(out, '\n'))
file:close()
