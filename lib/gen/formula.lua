-- Formulas: composites and gradients as C functions over rl_call (formula text -> op_formula.c, op_grad.c).
--
-- A value is { t = type, c = C text }: T tensor, S list of tensors, F double, I int64, B bool, L ints, D dtype, N nil. Scalars are C
-- expressions; a tensor result takes a slot of the array t[], which the function releases at its end. A statement of a gradient runs only
-- when one of the inputs it serves is asked for (the mask), so an input's gradient costs nothing when nobody wants it.
local parse = require('parse').statements

local M = {}
local rows, helpers

local opOf = { ['+'] = 'add', ['-'] = 'sub', ['*'] = 'mul', ['/'] = 'div', ['^'] = 'pow', ['=='] = 'eq', ['~='] = 'ne',
   ['<'] = 'lt', ['>'] = 'gt', ['<='] = 'le', ['>='] = 'ge' }
local cmp = { ['=='] = '==', ['~='] = '!=', ['<'] = '<', ['>'] = '>', ['<='] = '<=', ['>='] = '>=' }
local attrType = { i = 'I', b = 'B', f = 'F', d = 'D', l = 'L' }
local helperType = { tensor = 'T', tensors = 'S', meta = 'T', ints = 'L', int = 'I', num = 'F', bool = 'B', dtype = 'D' }

-- Functions of a tensor's shape and dtype.
local meta = {
   ndim = { 'I', function(x) return ('(int64_t)%s->ndim'):format(x) end },
   size = { 'I', function(x, d) return ('rl_size(%s, %s)'):format(x, d) end },
   sizes = { 'L', function(x) return ('rl_sizes(%s)'):format(x) end },
   numel = { 'I', function(x) return ('rl_numel(%s)'):format(x) end },
   dtype = { 'D', function(x) return ('(rl_dtype)%s->dtype'):format(x) end },
   all_dims = { 'L', function(x) return ('rl_all_dims(%s)'):format(x) end },
   last = { 'I', function(x) return ('(int64_t)(%s->ndim - 1)'):format(x) end },
   has = { 'B', function(x) return ('(%s != NULL)'):format(x) end },
   float32 = { 'D', function() return 'RL_F32' end },
   float64 = { 'D', function() return 'RL_F64' end },
   int64 = { 'D', function() return 'RL_I64' end },
}

local typeOf

local function typeOfBin(f, e)
   local a, b = typeOf(f, e.a), typeOf(f, e.b)
   if e.op == '..' then return 'L' end
   if a == 'T' or b == 'T' then return 'T' end
   if cmp[e.op] then return 'B' end
   if e.op == '/' or e.op == '^' or a == 'F' or b == 'F' then return 'F' end
   return 'I'
end

local function typeOfCall(e)
   if meta[e.name] then return meta[e.name][1] end
   if helpers[e.name] then return helperType[helpers[e.name].result] end
   if rows[e.name] then return 'T' end
   error('no op or function ' .. e.name, 0)
end

function typeOf(f, e)
   local tag = e.tag
   if tag == 'num' then return e.int and 'I' or 'F' end
   if tag == 'bool' or tag == 'not' then return 'B' end
   if tag == 'nil' then return 'N' end
   if tag == 'list' then return e.items[1] and typeOf(f, e.items[1]) == 'T' and 'S' or 'L' end
   if tag == 'index' or tag == 'len' then return 'I' end
   if tag == 'call' then return typeOfCall(e) end
   if tag == 'un' then return typeOf(f, e.a) end
   if tag == 'bin' then return typeOfBin(f, e) end
   if tag == 'name' then
      if e.name == 'inf' then return 'F' end
      local v = f.env[e.name]
      if not v then error('unknown name ' .. e.name, 0) end
      return v.t
   end
   local b = typeOf(f, e.b) -- and, or: the type of the value
   return b == 'N' and typeOf(f, e.a) or b
end

-- One function being written.
local function newFunction()
   local f = { lines = {}, indent = 1, ntemp = 0, nnum = 0, nlist = 0, env = {}, reads = {} }
   function f:p(fmt, ...)
      local s = select('#', ...) > 0 and fmt:format(...) or fmt
      self.lines[#self.lines + 1] = ('  '):rep(self.indent) .. s
   end
   function f:temp(n)
      local k = self.ntemp
      self.ntemp = k + (n or 1)
      return k
   end
   function f:check(fmt, ...) self:p('if ((s = %s) != RL_OK) goto done;', fmt:format(...)) end
   return f
end

local emit, emitCall

-- C text of a scalar of the wanted type.
local function scalar(f, e, want)
   local v = emit(f, e)
   if v.t == want or want == nil then return v.c end
   if want == 'I' and v.t == 'F' then return ('(int64_t)(%s)'):format(v.c) end
   if want == 'F' and v.t == 'I' then return ('(double)(%s)'):format(v.c) end
   if want == 'B' and v.t == 'I' then return ('(%s) != 0'):format(v.c) end
   error(('got type %s, need %s'):format(v.t, want), 0)
end

-- C text of a tensor argument: numbers become weak tensors.
local function tensor(f, e)
   local v = emit(f, e)
   if v.t == 'T' then return v.c end
   if v.t == 'N' then return 'NULL' end
   if v.t == 'B' then v = { t = 'I', c = '(int64_t)(' .. v.c .. ')' } end
   if v.t ~= 'F' and v.t ~= 'I' then error('got type ' .. v.t .. ', need a tensor', 0) end
   f.nnum = f.nnum + 1
   return ('rl_number_set%s(&n[%d], %s)'):format(v.t == 'I' and 'i' or '', f.nnum - 1, v.c)
end

-- A tensor read for its shape only.
local function metaTensor(f, e)
   if e.tag == 'name' and f.env[e.name] then return f.env[e.name].c end
   return tensor(f, e)
end

-- Tensors of a variadic argument: pointer and count.
local function tensors(f, e)
   if e.tag == 'list' then
      local list = {}
      for i, item in ipairs(e.items) do list[i] = tensor(f, item) end
      return ('(rl_tensor *const[]){%s}, %d'):format(table.concat(list, ', '), #list)
   end
   local v = emit(f, e)
   if v.t ~= 'S' then error('got type ' .. v.t .. ', need tensors', 0) end
   return v.c
end

local argument = {
   tensor = tensor, tensors = tensors, meta = metaTensor,
   ints = function(f, e) return scalar(f, e, 'L') end, int = function(f, e) return scalar(f, e, 'I') end,
   num = function(f, e) return scalar(f, e, 'F') end, bool = function(f, e) return scalar(f, e, 'B') end,
   dtype = function(f, e) return scalar(f, e, 'D') end,
}

local function emitHelper(f, h, e)
   local args = {}
   if #e.args ~= #h.args then error(('%s: got %d arguments, need %d'):format(h.name, #e.args, #h.args), 0) end
   for i, a in ipairs(h.args) do args[i] = argument[a](f, e.args[i]) end
   if h.result == 'tensor' then
      local k = f:temp()
      args[#args + 1] = ('&t[%d]'):format(k)
      f:check('rl_h_%s(%s)', h.name, table.concat(args, ', '))
      return { t = 'T', c = ('t[%d]'):format(k) }
   end
   if h.result == 'tensors' then -- as many as the function has inputs
      local k = f.nlist
      f.nlist = k + 1
      args[#args + 1] = ('l%d'):format(k)
      f:p('if (!(l%d = rl_alloc((size_t)nin * sizeof *l%d))) { s = RL_OOM; goto done; }', k, k)
      f:p('memset(l%d, 0, (size_t)nin * sizeof *l%d);', k, k)
      f:check('rl_h_%s(%s)', h.name, table.concat(args, ', '))
      return { t = 'S', c = ('l%d, nin'):format(k), list = ('l%d'):format(k) }
   end
   return { t = helperType[h.result], c = ('rl_h_%s(%s)'):format(h.name, table.concat(args, ', ')) }
end

local function defaultText(a)
   if a.kind == 'l' then return 'rl_ints_empty()' end
   if a.kind == 'b' then return a.def ~= 0 and 'true' or 'false' end
   return ('%.17g'):format(a.def)
end

-- Calls an op; its outputs take consecutive slots. Returns the first slot.
local function emitOp(f, row, e)
   local args, given = {}, #e.args
   if row.variadic then
      args[1] = tensors(f, e.args[1])
   else
      for i = 1, row.nin do args[i] = e.args[i] and tensor(f, e.args[i]) or 'NULL' end
   end
   if given < row.nmin then error(row.name .. ': too few inputs', 0) end
   if given > row.nin + #row.attrs then error(row.name .. ': too many arguments', 0) end
   for i, a in ipairs(row.attrs) do
      local x = e.args[row.nin + i]
      if not x and not (a.optional or a.kind == 'l') then error(row.name .. ': attribute ' .. a.name .. ' is missing', 0) end
      args[#args + 1] = x and scalar(f, x, attrType[a.kind]) or defaultText(a)
   end
   local k = f:temp(row.nout)
   args[#args + 1] = ('&t[%d]'):format(k)
   f:check('rl_op_%s(%s)', row.name, table.concat(args, ', '))
   return k
end

function emitCall(f, e)
   local m = meta[e.name]
   if m then
      local args = {}
      for i, a in ipairs(e.args) do args[i] = i == 1 and metaTensor(f, a) or scalar(f, a, 'I') end
      return { t = m[1], c = m[2](unpack(args)) }
   end
   if helpers[e.name] then return emitHelper(f, helpers[e.name], e) end
   return { t = 'T', c = ('t[%d]'):format(emitOp(f, rows[e.name], e)) }
end

local function emitBin(f, e)
   local t = typeOfBin(f, e)
   if t == 'T' then return emitCall(f, { name = opOf[e.op] or error('operator ' .. e.op, 0), args = { e.a, e.b } }) end
   if t == 'L' then return { t = t, c = ('rl_ints_join(%s, %s)'):format(scalar(f, e.a, 'L'), scalar(f, e.b, 'L')) } end
   local want = (t == 'F') and 'F' or nil
   local a, b = scalar(f, e.a, want), scalar(f, e.b, want)
   if e.op == '^' then return { t = 'F', c = ('pow(%s, %s)'):format(a, b) } end
   return { t = t, c = ('(%s %s %s)'):format(a, cmp[e.op] or e.op, b) }
end

-- Alternatives of `c1 and v1 or c2 and v2 or v3`: { {cond, value} ..., {nil, value} }.
local function alternatives(e)
   local list = {}
   while e.tag == 'or' do
      table.insert(list, 1, e.b)
      e = e.a
   end
   table.insert(list, 1, e)
   for i, item in ipairs(list) do
      if i < #list then
         if item.tag ~= 'and' then error('`or` needs `condition and value` before it', 0) end
         list[i] = { item.a, item.b }
      else
         list[i] = { nil, item }
      end
   end
   return list
end

local function emitChoice(f, e)
   local t = typeOf(f, e)
   if t == 'B' then
      return { t = 'B', c = ('(%s %s %s)'):format(scalar(f, e.a, 'B'), e.tag == 'and' and '&&' or '||', scalar(f, e.b, 'B')) }
   end
   local list = alternatives(e)
   if t ~= 'T' then
      local want = t
      for _, item in ipairs(list) do if typeOf(f, item[2]) == 'F' then want = 'F' end end
      local c = scalar(f, list[#list][2], want)
      for i = #list - 1, 1, -1 do c = ('(%s ? %s : %s)'):format(scalar(f, list[i][1], 'B'), scalar(f, list[i][2], want), c) end
      return { t = want, c = c }
   end
   local k = f:temp()
   for i, item in ipairs(list) do
      if i < #list then f:p('%sif (%s) {', i > 1 and '} else ' or '', scalar(f, item[1], 'B')) else f:p('} else {') end
      f.indent = f.indent + 1
      f:p('t[%d] = rl_tensor_keep(%s);', k, tensor(f, item[2]))
      f.indent = f.indent - 1
   end
   f:p('}')
   return { t = 'T', c = ('t[%d]'):format(k) }
end

function emit(f, e)
   local tag = e.tag
   if tag == 'num' then return { t = e.int and 'I' or 'F', c = ('%.17g'):format(e.value) } end
   if tag == 'bool' then return { t = 'B', c = tostring(e.value) } end
   if tag == 'nil' then return { t = 'N', c = 'NULL' } end
   if tag == 'not' then return { t = 'B', c = '!' .. scalar(f, e.a, 'B') } end
   if tag == 'len' then return { t = 'I', c = ('(int64_t)(%s).n'):format(scalar(f, e.a, 'L')) } end
   if tag == 'index' then return { t = 'I', c = ('(%s).v[%s]'):format(scalar(f, e.a, 'L'), scalar(f, e.i, 'I')) } end
   if tag == 'call' then return emitCall(f, e) end
   if tag == 'bin' then return emitBin(f, e) end
   if tag == 'and' or tag == 'or' then return emitChoice(f, e) end
   if tag == 'un' then
      if typeOf(f, e.a) == 'T' then return emitCall(f, { name = 'neg', args = { e.a } }) end
      local v = emit(f, e.a)
      return { t = v.t, c = ('(-%s)'):format(v.c) }
   end
   if tag == 'list' then
      local list = {}
      for i, item in ipairs(e.items) do list[i] = scalar(f, item, 'I') end
      if #list == 0 then return { t = 'L', c = 'rl_ints_empty()' } end
      return { t = 'L', c = ('rl_ints_of(%d, (const int64_t[]){%s})'):format(#list, table.concat(list, ', ')) }
   end
   if e.name == 'inf' then return { t = 'F', c = 'INFINITY' } end
   local v = f.env[e.name]
   f.reads[v.c] = true
   return v
end

-- Names that an expression reads.
local function namesRead(e, set)
   if e.tag == 'name' then set[e.name] = true end
   for _, v in pairs(e) do
      if type(v) == 'table' then namesRead(v, set) end
   end
   return set
end

local function attrEnv(f, row)
   for _, a in ipairs(row.attrs) do
      local t = attrType[a.kind]
      local c = ('a->v[%d].%s'):format(a.slot, t == 'F' and 'f' or 'i')
      if t == 'L' then c = ('rl_attr_ints(a, %d)'):format(a.slot) end
      if t == 'B' then c = ('(bool)%s'):format(c) end
      if t == 'D' then c = ('(rl_dtype)%s'):format(c) end
      f.env[a.name] = { t = t, c = c }
   end
end

local function inputEnv(f, row)
   if row.variadic then
      f.env[row.ins[1].name] = { t = 'S', c = 'in, nin' }
   else
      for i, v in ipairs(row.ins) do f.env[v.name] = { t = 'T', c = ('in[%d]'):format(i - 1) } end
   end
end

-- Evaluates a statement's expression and returns the values of its names.
local function assignValues(f, st)
   local e = st.expr
   if #st.names == 1 then return { emit(f, e) } end
   local row = e.tag == 'call' and rows[e.name]
   if not row or row.nout < #st.names then error('several names need an op with as many results', 0) end
   local k, list = emitOp(f, row, e), {}
   for i = 1, #st.names do list[i] = { t = 'T', c = ('t[%d]'):format(k + i - 1) } end
   return list
end

-- A scalar that is named is evaluated once.
local ctype = { F = 'double', I = 'int64_t', B = 'bool', L = 'rl_ints', D = 'rl_dtype' }

local function bind(f, name, v)
   if ctype[v.t] then
      f.nvar = (f.nvar or 0) + 1
      local c = ('v%d_%s'):format(f.nvar, name)
      f.vars = f.vars or {}
      f.vars[#f.vars + 1] = ('%s %s'):format(ctype[v.t], c)
      f:p('%s = %s;', c, v.c)
      v = { t = v.t, c = c }
   end
   f.env[name] = v
end

local function finish(f, head)
   local out = { head .. ' {', '  rl_status s = RL_OK;' }
   local function add(...) out[#out + 1] = string.format(...) end
   if f.ntemp > 0 then add('  rl_tensor *t[%d] = {0};', f.ntemp) end
   if f.nnum > 0 then add('  rl_number n[%d];', f.nnum) end
   for k = 0, f.nlist - 1 do add('  rl_tensor **l%d = NULL;', k) end
   for _, v in ipairs(f.vars or {}) do add('  %s;', v) end
   add('  (void)in; (void)nin; (void)a;')
   for _, line in ipairs(f.lines) do out[#out + 1] = line end
   if table.concat(f.lines):find('goto done') then add('done:') end
   if f.ntemp > 0 then add('  rl_release_all(t, %d);', f.ntemp) end
   for k = 0, f.nlist - 1 do add('  if (l%d) rl_release_all(l%d, nin);', k, k); add('  rl_free(l%d, (size_t)nin * sizeof *l%d);', k, k) end
   add('  return s;')
   add('}')
   return table.concat(out, '\n') .. '\n'
end

local function compileFormula(row)
   local f = newFunction()
   inputEnv(f, row)
   attrEnv(f, row)
   local results
   for _, st in ipairs(parse(row.formula)) do
      if st.exprs then
         results = {}
         for i, e in ipairs(st.exprs) do results[i] = tensor(f, e) end
      else
         for i, v in ipairs(assignValues(f, st)) do bind(f, st.names[i], v) end
      end
   end
   if not results or #results ~= row.nout then error(('returns %d values, need %d'):format(results and #results or 0, row.nout), 0) end
   for i, c in ipairs(results) do f:p('out[%d] = rl_tensor_keep(%s);', i - 1, c) end
   return finish(f, ('rl_status rl_formula_%s(rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor **out)'):format(row.name))
end

-- Which input's gradient a name holds, counting from 0.
local function targetOf(row, name)
   for i, v in ipairs(row.ins) do
      if name == 'd' .. v.name then return i - 1 end
   end
end

-- Bits of the inputs that each statement serves.
local function statementMasks(row, list)
   local live, masks = {}, {}
   for i = #list, 1, -1 do
      local mask = 0
      for _, name in ipairs(list[i].names) do
         local target = targetOf(row, name)
         mask = bit.bor(mask, target and bit.lshift(1, target) or 0, live[name] or 0)
         live[name] = 0
      end
      masks[i] = mask
      for name in pairs(namesRead(list[i].expr, {})) do live[name] = bit.bor(live[name] or 0, mask) end
   end
   return masks
end

-- Notes, for the inputs in mask, what the statement reads by value.
local function noteReads(row, f, mask)
   for c in pairs(f.reads) do
      local what, k = c:match('^(%a+)%[(%d+)%]$')
      local b = k and bit.lshift(1, tonumber(k))
      for i = 0, row.nin - 1 do
         if bit.band(mask, bit.lshift(1, i)) ~= 0 and b then
            if what == 'in' then row.needIn[i + 1] = bit.bor(row.needIn[i + 1], b) end
            if what == 'y' then row.needOut[i + 1] = bit.bor(row.needOut[i + 1], b) end
         end
      end
      if what == 'in' then row.saveIn = bit.bor(row.saveIn, b) end
      if what == 'y' then row.saveOut = bit.bor(row.saveOut, b) end
      if what == 'dy' then row.saveGrad = bit.bor(row.saveGrad, b) end
   end
end

local function assignGrads(f, row, st, values)
   for i, v in ipairs(values) do
      local target = targetOf(row, st.names[i])
      if not target then bind(f, st.names[i], v)
      elseif v.t == 'T' then
         f:p('%sdx[%d] = rl_tensor_keep(%s);', #values > 1 and ('if (need & %du) '):format(bit.lshift(1, target)) or '', target, v.c)
      else error('gradient is not a tensor', 0) end
   end
end

-- `dxs = f(...)` of a variadic op: all gradients at once.
local function variadicGrad(f, row, st)
   local v = emit(f, st.expr)
   f:p('for (int i = 0; i < nin; i++) dx[i] = rl_tensor_retain(%s[i]);', v.list)
   row.saveGrad = 1
end

local function gradStatement(f, row, st, mask)
   f.reads = {}
   f:p('if (need & %du) {', mask)
   f.indent = f.indent + 1
   assignGrads(f, row, st, assignValues(f, st))
   f.indent = f.indent - 1
   f:p('}')
   noteReads(row, f, mask)
end

local function compileGrad(row)
   local f = newFunction()
   inputEnv(f, row)
   attrEnv(f, row)
   for k, name in ipairs(row.outs) do
      if not f.env[name] then f.env[name] = { t = 'T', c = ('y[%d]'):format(k - 1) } end
      f.env['d' .. name] = { t = 'T', c = ('dy[%d]'):format(k - 1) }
   end
   row.needIn, row.needOut, row.saveIn, row.saveOut, row.saveGrad = {}, {}, 0, 0, 0
   for i = 1, math.max(row.nin, 1) do row.needIn[i], row.needOut[i] = 0, 0 end
   local list = parse(row.grad)
   local masks = statementMasks(row, list)
   for i, st in ipairs(list) do
      if row.variadic then variadicGrad(f, row, st)
      elseif masks[i] ~= 0 then gradStatement(f, row, st, masks[i]) end
   end
   f:p('(void)y; (void)dy; (void)need; (void)dx;')
   row.gradName = 'rl_grad_' .. row.name
   return finish(f, ('rl_status %s(rl_tensor *const *in, int nin, const rl_attrs *a, rl_tensor *const *y, '):format(row.gradName) ..
      'rl_tensor *const *dy, uint32_t need, rl_tensor **dx)')
end

local function protected(row, what, fn)
   local ok, text = pcall(fn, row)
   if not ok then error(('ops.def: %s: %s: %s'):format(row.name, what, tostring(text)), 0) end
   return text
end

--- Compiles every formula and gradient; notes in the rows what gradients read.
-- @return text of op_formula.c and of op_grad.c
function M.compile(allRows, allHelpers)
   rows, helpers = allRows, allHelpers
   local formulas, grads = { '#include "op_call.h"\n' }, { '#include "op_call.h"\n' }
   for _, row in ipairs(rows) do
      if row.formula then formulas[#formulas + 1] = protected(row, 'formula', compileFormula) end
      if row.grad then grads[#grads + 1] = protected(row, 'grad', compileGrad) end
   end
   return table.concat(formulas, '\n'), table.concat(grads, '\n')
end

return M
