-- Kernel printer: inner loops of EW and RED rows by dtype (rows -> ew_kernels.c red_kernels.c), compiled once per instruction set.
-- An expression is the row's text with each called name completed to rl_<name>_<suffix> of the compute type.
local M = {}

local dtypes = {
   { id = 'U8', c = 'uint8_t', ct = 'uint8_t', s = 'u8', cs = 'u8', acc = 'int64_t' },
   { id = 'I8', c = 'int8_t', ct = 'int8_t', s = 'i8', cs = 'i8', acc = 'int64_t' },
   { id = 'I16', c = 'int16_t', ct = 'int16_t', s = 'i16', cs = 'i16', acc = 'int64_t' },
   { id = 'I32', c = 'int32_t', ct = 'int32_t', s = 'i32', cs = 'i32', acc = 'int64_t' },
   { id = 'I64', c = 'int64_t', ct = 'int64_t', s = 'i64', cs = 'i64', acc = 'int64_t' },
   { id = 'F16', c = 'rl_f16', ct = 'float', s = 'f16', cs = 'f32', acc = 'double', float = true },
   { id = 'BF16', c = 'rl_bf16', ct = 'float', s = 'bf16', cs = 'f32', acc = 'double', float = true },
   { id = 'F32', c = 'float', ct = 'float', s = 'f32', cs = 'f32', acc = 'double', float = true },
   { id = 'F64', c = 'double', ct = 'double', s = 'f64', cs = 'f64', acc = 'double', float = true },
}
local byName = {}
for _, d in ipairs(dtypes) do byName[d.s] = d end
local fixed = { byte = byName.u8, long = byName.i64, double = byName.f64, float = byName.f32 }

local function allowed(row, d)
   return row.types ~= 'float' and row.types ~= 'int' or (row.types == 'float') == (d.float or false)
end

--- C text of an expression for one compute suffix.
function M.expr(text, suffix)
   return (text:gsub('([%a_][%w_]*)(%s*%()', function(name, paren)
      return 'rl_' .. name .. '_' .. suffix .. paren
   end))
end

local function attrs(row, d)
   local list = {}
   for _, a in ipairs(row.attrs) do
      if a.kind == 'f' then list[#list + 1] = ('const %s %s = (%s)a->v[%d].f;'):format(d.ct, a.name, d.ct, a.slot) end
      if a.kind == 'i' or a.kind == 'b' then list[#list + 1] = ('const int64_t %s = a->v[%d].i;'):format(a.name, a.slot) end
   end
   return table.concat(list, ' ')
end

local function elementwise(row, d, out)
   local args, nin = {}, #row.ins
   for _, v in ipairs(row.ins) do
      local t = v.type == 'same' and d or fixed[v.type]
      args[#args + 1] = ('%s, %s, rl_ld_%s'):format(t.c, t.ct, t.s)
   end
   local r = row.out and fixed[row.out] or d
   local cast = r.float and M.expr(row.expr, d.cs) or ('(%s)(%s)'):format(r.ct, M.expr(row.expr, d.cs))
   out[#out + 1] = ('RL_EW%d(ew_%s_%s, %s, %s, rl_st_%s, %s, %s)'):format(nin, row.name, d.s, table.concat(args, ', '), r.c, r.s, attrs(row, d), cast)
end

local function castText(from, to)
   if to.float or not from.float then return ('(%s)x'):format(to.ct) end
   return ('(%s)rl_toint((double)x)'):format(to.ct)
end

local function casts(out)
   for _, f in ipairs(dtypes) do
      for _, t in ipairs(dtypes) do
         if f == t then
            local bits = ({ uint8_t = 'u8', int8_t = 'i8', int16_t = 'i16', rl_f16 = 'i16', rl_bf16 = 'i16', int32_t = 'i32', float = 'i32', int64_t = 'i64', double = 'i64' })[f.c]
            local b = byName[bits]
            out[#out + 1] = ('RL_EW1(cast_%s_%s, %s, %s, rl_ld_%s, %s, rl_st_%s, , x)'):format(f.s, t.s, b.c, b.ct, b.s, b.c, b.s)
         else
            out[#out + 1] = ('RL_EW1(cast_%s_%s, %s, %s, rl_ld_%s, %s, rl_st_%s, , %s)'):format(f.s, t.s, f.c, f.ct, f.s, t.c, t.s, castText(f, t))
         end
      end
   end
end

local head = '#include "loop.h"\n'

-- Elementwise file: inner loops, then the tables.
local function ewFile(rows)
   local out, tab = { head }, {}
   for _, row in ipairs(rows) do
      if row.kind == 'EW' and row.name ~= 'cast' then
         local list = {}
         for _, d in ipairs(dtypes) do
            if allowed(row, d) then
               elementwise(row, d, out)
               list[#list + 1] = ('[RL_%s] = ew_%s_%s'):format(d.id, row.name, d.s)
            end
         end
         tab[#tab + 1] = ('  [RL_OP_%s] = {%s},'):format(row.id, table.concat(list, ', '))
      end
   end
   casts(out)
   out[#out + 1] = 'const rl_ew_fn RL_CAT(rl_ew_table, RL_ISA)[RL_NOP][RL_NDTYPE] = {\n' .. table.concat(tab, '\n') .. '\n};'
   local c = {}
   for _, f in ipairs(dtypes) do
      local list = {}
      for _, t in ipairs(dtypes) do list[#list + 1] = ('[RL_%s] = cast_%s_%s'):format(t.id, f.s, t.s) end
      c[#c + 1] = ('  [RL_%s] = {%s},'):format(f.id, table.concat(list, ', '))
   end
   out[#out + 1] = 'const rl_ew_fn RL_CAT(rl_cast_table, RL_ISA)[RL_NDTYPE][RL_NDTYPE] = {\n' .. table.concat(c, '\n') .. '\n};'
   return table.concat(out, '\n') .. '\n'
end

local limits = { u8 = { '0', 'UINT8_MAX' }, i8 = { 'INT8_MIN', 'INT8_MAX' }, i16 = { 'INT16_MIN', 'INT16_MAX' }, i32 = { 'INT32_MIN', 'INT32_MAX' },
   i64 = { 'INT64_MIN', 'INT64_MAX' }, f32 = { '-INFINITY', 'INFINITY' }, f64 = { '-INFINITY', 'INFINITY' } }
local function initial(text, d)
   if text == 'lowest' then return limits[d.cs][1] end
   if text == 'highest' then return limits[d.cs][2] end
   return text
end

local function redFile(rows)
   local out, tab = { head }, {}
   for _, row in ipairs(rows) do
      if row.kind == 'RED' and not row.expr:match('^arg') then
         local list = {}
         for _, d in ipairs(dtypes) do
            if allowed(row, d) then
               local name, init = ('red_%s_%s'):format(row.name, d.s), initial(row.init, d)
               local minmax = row.init == 'lowest' or row.init == 'highest'
               -- Sums and products of integers wrap: folding in the wide type is the same modulo the narrow one.
               local c = (d.float or minmax) and d.ct or 'int64_t'
               local a, as = minmax and d.ct or d.acc, minmax and d.cs or (d.float and 'f64' or 'i64')
               local cs = (d.float or minmax) and d.cs or 'i64'
               out[#out + 1] = ('RL_RED(%s, %s, %s, %s, rl_ld_%s, rl_st_%s, %s, %s, %s, %s)'):format(name, d.c, c, a, d.s, d.s, init, init, M.expr(row.expr, cs), M.expr(row.expr, as))
               list[#list + 1] = ('[RL_%s] = RL_RED_FNS(%s, %s)'):format(d.id, name, a)
            end
         end
         tab[#tab + 1] = ('  [RL_OP_%s] = {%s},'):format(row.id, table.concat(list, ', '))
      end
   end
   out[#out + 1] = 'const rl_red_fns RL_CAT(rl_red_table, RL_ISA)[RL_NOP][RL_NDTYPE] = {\n' .. table.concat(tab, '\n') .. '\n};'
   return table.concat(out, '\n') .. '\n'
end

-- Entry points that the table of facts names.
local function entries(rows)
   local out = { '#include "tensor/op.h"', 'rl_status rl_ew_run(rl_op, rl_tensor *const *, int, const rl_attrs *, rl_tensor *const *);',
      'rl_status rl_red_run(rl_op, rl_tensor *const *, int, const rl_attrs *, rl_tensor *const *);',
      'rl_status rl_arg_run(rl_op, rl_tensor *const *, int, const rl_attrs *, rl_tensor *const *);',
      'rl_status rl_cast_run(rl_op, rl_tensor *const *, int, const rl_attrs *, rl_tensor *const *);',
      '#define ENTRY(NAME, RUN) rl_status NAME(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out); \\',
      '  rl_status NAME(rl_op op, rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *out) { return RUN(op, in, nin, a, out); }' }
   for _, row in ipairs(rows) do
      if row.kind == 'EW' then out[#out + 1] = ('ENTRY(rl_k_ew_%s_cpu, %s)'):format(row.name, row.name == 'cast' and 'rl_cast_run' or 'rl_ew_run') end
      if row.kind == 'RED' then out[#out + 1] = ('ENTRY(rl_k_red_%s_cpu, %s)'):format(row.name, row.expr:match('^arg') and 'rl_arg_run' or 'rl_red_run') end
   end
   return table.concat(out, '\n') .. '\n'
end

return setmetatable(M, { __call = function(_, rows, write)
   write('ew_kernels.c', ewFile(rows))
   write('red_kernels.c', redFile(rows))
   write('ew_entries.c', entries(rows))
end })
