-- Table printer: enum, table of facts, typed call wrappers, Lua spellings (rows -> op_enum.inc op_table.c op_call.h op_lua.inc).
local function printer()
   local lines = {}
   local function p(fmt, ...) lines[#lines + 1] = select('#', ...) > 0 and fmt:format(...) or fmt end
   return p, function() return table.concat(lines, '\n') .. '\n' end
end

local function quote(s)
   if s == nil then return 'NULL' end
   return '"' .. s:gsub('[\\"]', '\\%0'):gsub('\n', '\\n') .. '"'
end

local function enum(rows)
   local p, text = printer()
   for _, row in ipairs(rows) do p('RL_OPROW(%s)', row.id) end
   return text()
end

local typesCode = { all = 0, float = 1, int = 2 }
local inCode = { same = '0', any = '255', byte = '1 + RL_U8', long = '1 + RL_I64', float = '1 + RL_F32', double = '1 + RL_F64' }
local outCode = { byte = '1 + RL_U8', long = '1 + RL_I64', double = '1 + RL_F64', attr = '255' }

local function flags(row)
   local list = {}
   local function add(cond, name) if cond then list[#list + 1] = 'RL_OPF_' .. name end end
   add(row.grad == false, 'NODIFF')
   add(row.prim, 'PRIM')
   add(row.commutes, 'COMMUTES')
   add(row.kind == 'COMP' and not row.shape, 'INLINE')
   add(row.random, 'RANDOM')
   add(row.clears, 'CLEARS')
   add(row.smooth, 'SMOOTH')
   return #list > 0 and table.concat(list, ' | ') or '0'
end

-- C name of the CPU kernel, or nil.
local function kernelName(row)
   if row.kind == 'EW' then return ('rl_k_ew_%s_cpu'):format(row.name) end
   if row.kind == 'RED' then return ('rl_k_red_%s_cpu'):format(row.name) end
   if row.kind == 'VIEW' then return nil end
   if row.kind == 'COMP' and not row.kernel then return nil end
   return ('rl_k_%s_cpu'):format(row.kernel or row.name)
end

-- C name of the CUDA kernel; those of PRIM and COMP rows are weak: absent ones are NULL.
local function cudaName(row)
   if row.kind == 'EW' then return row.name == 'cast' and 'rl_cuda_cast_run' or 'rl_cuda_ew_run' end
   if row.kind == 'RED' then return row.expr:match('^arg') and 'rl_cuda_arg_run' or 'rl_cuda_red_run' end
   local cpu = kernelName(row)
   return cpu and cpu:gsub('_cpu$', '_cuda') or nil
end

local function shapeName(row)
   if row.kind == 'EW' then return 'rl_shape_ew' end
   if row.kind == 'RED' then return 'rl_shape_red' end
   if row.kind == 'VIEW' then return 'rl_shape_view' end
   return row.shape and 'rl_shape_' .. row.shape
end

local function declare(p, rows)
   local seen = {}
   local function once(name, fmt)
      if name and not seen[name] then
         seen[name] = true
         p(fmt, name)
      end
   end
   for _, row in ipairs(rows) do
      once(kernelName(row), '__attribute__((weak)) rl_status %s(rl_op, rl_tensor *const *, int, const rl_attrs *, rl_tensor *const *);')
      once(cudaName(row), '__attribute__((weak)) rl_status %s(rl_op, rl_tensor *const *, int, const rl_attrs *, rl_tensor *const *);')
      once(shapeName(row), 'rl_status %s(rl_op, rl_tensor *const *, int, const rl_attrs *, rl_meta *);')
      once(row.view and 'rl_view_' .. row.view, 'rl_status %s(rl_op, const rl_tensor *, const rl_attrs *, rl_geom *);')
      once(row.formula and 'rl_formula_' .. row.name, 'rl_status %s(rl_tensor *const *, int, const rl_attrs *, rl_tensor **);')
      once(row.gradName, 'rl_status %s(rl_tensor *const *, int, const rl_attrs *, rl_tensor *const *, rl_tensor *const *, uint32_t, rl_tensor **);')
   end
end

local function names(p, row, what, list)
   if #list == 0 then return 'NULL' end
   local q = {}
   for i, v in ipairs(list) do q[i] = quote(type(v) == 'table' and v.name or v) end
   p('static const char *const %s_%s[] = {%s};', what, row.name, table.concat(q, ', '))
   return what .. '_' .. row.name
end

local function attrList(p, row)
   if #row.attrs == 0 then return 'NULL' end
   local q = {}
   for i, a in ipairs(row.attrs) do
      q[i] = ("{%s, '%s', %d, %s, %.17g}"):format(quote(a.name), a.kind, a.slot, tostring(a.optional), a.def)
   end
   p('static const rl_attr_info attrs_%s[] = {%s};', row.name, table.concat(q, ', '))
   return 'attrs_' .. row.name
end

local function inTypes(row)
   local q = {}
   for i, v in ipairs(row.ins) do q[i] = inCode[v.type] end
   if #q == 0 then q[1] = '0' end
   return table.concat(q, ', ')
end

local function entry(p, row)
   local ins, outs, attrs = names(p, row, 'in', row.ins), names(p, row, 'out', row.outs), attrList(p, row)
   local e = {}
   local function f(name, value) if value then e[#e + 1] = ('.%s = %s'):format(name, tostring(value)) end end
   f('name', quote(row.name)); f('doc', quote(row.doc)); f('expr', row.expr and quote(row.expr)); f('init', row.init and quote(row.init))
   f('in_names', ins); f('out_names', outs); f('attrs', attrs)
   f('kind', 'RL_K_' .. row.kind); f('nin', row.variadic and 255 or row.nin); f('nmin', row.nmin)
   f('nout', row.nout); f('nattrs', #row.attrs)
   local opt = 0
   for i, v in ipairs(row.ins) do if v.optional then opt = opt + 2 ^ (i - 1) end end
   f('optional', opt)
   f('dtypes', typesCode[row.types or 'all']); f('in_dtypes', '{' .. inTypes(row) .. '}')
   f('out_dtype', row.out and outCode[row.out] or 0)
   f('flags', flags(row)); f('save_in', row.saveIn or 0); f('save_out', row.saveOut or 0); f('save_grad', row.saveGrad or 0); f('maybe_grad', row.maybeGrad)
   f('need_in', row.needIn and '{' .. table.concat(row.needIn, ', ') .. '}'); f('need_out', row.needOut and '{' .. table.concat(row.needOut, ', ') .. '}')
   f('shape', shapeName(row)); f('view', row.view and 'rl_view_' .. row.view)
   local k = kernelName(row)
   f('kernel', k and '{' .. k .. ', ' .. cudaName(row) .. '}')
   f('formula', row.formula and 'rl_formula_' .. row.name); f('grad', row.gradName)
   return ('  [RL_OP_%s] = {%s},'):format(row.id, table.concat(e, ', '))
end

local function facts(rows)
   local p, text = printer()
   p('#include "tensor/op.h"')
   declare(p, rows)
   local list = {}
   for i, row in ipairs(rows) do list[i] = entry(p, row) end
   p('const rl_op_info rl_ops[RL_NOP] = {')
   for _, line in ipairs(list) do p(line) end
   p('};')
   return text()
end

local ctypes = { i = 'int64_t', b = 'bool', f = 'double', d = 'rl_dtype', l = 'rl_ints' }

-- One typed wrapper: inputs, then attributes, then where the results go.
local function wrapper(p, row)
   local params, set, ins = {}, {}, {}
   if row.variadic then
      params = { 'rl_tensor *const *xs', 'int nxs' }
   else
      for i, v in ipairs(row.ins) do params[i], ins[i] = 'rl_tensor *' .. v.name, v.name end
   end
   for _, a in ipairs(row.attrs) do
      params[#params + 1] = ('%s %s'):format(ctypes[a.kind], 'a_' .. a.name)
      local v = 'a_' .. a.name
      local x = row.variadic and 'xs[0]' or ins[1]
      if a.type == 'dim' and x then v = ('rl_dim(%s, %s)'):format(x, v) end
      if a.type == 'dims' and x then v = ('rl_dims(%s, %s)'):format(x, v) end
      if a.kind == 'l' then set[#set + 1] = ('rl_attr_set_ints(&a, %d, %s);'):format(a.slot, v)
      else set[#set + 1] = ('a.v[%d].%s = %s;'):format(a.slot, a.kind == 'f' and 'f' or 'i', v) end
   end
   params[#params + 1] = 'rl_tensor **out'
   p('static inline rl_status rl_op_%s(%s) {', row.name, table.concat(params, ', '))
   if #row.attrs > 0 then p('  rl_attrs a = {0};') end
   for _, s in ipairs(set) do p('  ' .. s) end
   local a = #row.attrs > 0 and '&a' or 'NULL'
   if row.variadic then p('  return rl_call(RL_OP_%s, xs, nxs, %s, out);', row.id, a)
   elseif #ins == 0 then p('  return rl_call(RL_OP_%s, NULL, 0, %s, out);', row.id, a)
   else p('  return rl_call(RL_OP_%s, (rl_tensor *const[]){%s}, %d, %s, out);', row.id, table.concat(ins, ', '), #ins, a) end
   p('}')
end

local helperTypes = { tensor = 'rl_tensor *', meta = 'const rl_tensor *', ints = 'rl_ints ', int = 'int64_t ', num = 'double ',
   bool = 'bool ', dtype = 'rl_dtype ',
   tensors = 'rl_tensor *const *' }

local function helperProto(p, h)
   local params = {}
   for i, a in ipairs(h.args) do params[i] = helperTypes[a] .. 'a' .. i .. (a == 'tensors' and ', int n' .. i or '') end
   local ret = helperTypes[h.result]
   if h.result == 'tensors' then params[#params + 1], ret = 'rl_tensor **out', 'rl_status ' end
   if h.result == 'tensor' then params[#params + 1], ret = 'rl_tensor **out', 'rl_status ' end
   p('%srl_h_%s(%s);', ret, h.name, table.concat(params, ', '))
end

local function calls(rows, helpers)
   local p, text = printer()
   p('#ifndef RL_OP_CALL_H')
   p('#define RL_OP_CALL_H')
   p('#include "autograd/formula.h"')
   for _, h in ipairs(helpers) do helperProto(p, h) end
   for _, row in ipairs(rows) do wrapper(p, row) end
   p('#endif')
   return text()
end

local function lua(rows)
   local p, text = printer()
   for _, row in ipairs(rows) do
      local l = row.lua
      if type(l) == 'string' and l ~= '' then l = { [row.name] = l } end
      if type(l) == 'table' then
         local list = {}
         for name, form in pairs(l) do list[#list + 1] = ('RL_LUA("%s", %s, %s)'):format(name, form, row.id) end
         table.sort(list)
         for _, line in ipairs(list) do p(line) end
      end
   end
   return text()
end

return function(rows, helpers, write)
   write('op_enum.inc', enum(rows))
   write('op_table.c', facts(rows))
   write('op_call.h', calls(rows, helpers))
   write('op_lua.inc', lua(rows))
end
