-- Library functions: what they do to symbolic values (function -> model).
-- Those that only look at constants fold by calling the real one; iterators, tables, errors and metatables are modelled.

jit.off(true, true) -- each path is evaluated once: traces would not pay, and would push out the program's

local value = require 'relume.jit.value'
local ops = require 'relume.jit.ops'
local call = require 'relume.jit.call'
local breaks = require 'relume.jit.breaks'
local bytecode = require 'relume.jit.bytecode'
local okC, C = pcall(require, 'relume.core')

local const, NIL, TRUE, FALSE = value.const, value.NIL, value.TRUE, value.FALSE
local models, pure, refused = call.models, call.pure, call.refused

local function one(v) return {v, n = 1} end
local function bool(b) return one(b and TRUE or FALSE) end

local function argError(ctx, i, name, need, got)
   ctx:raise(("bad argument #%d to '%s' (%s expected, got %s)"):format(i, name, need, got and value.luatype(got) or 'no value'))
end

local function tableArg(ctx, args, i, name)
   local t = args[i]
   if not t or t.k ~= 'table' then argError(ctx, i, name, 'table', t) end
   return t
end

local function numberArg(ctx, args, i, name, default)
   local v = args[i]
   if not v or v.k == 'const' and v.v == nil and default then
      if default then return default end
      argError(ctx, i, name, 'number', v)
   end
   if v.k == 'gnum' then ctx:brk('data-dependent', 'an argument of ' .. name) end
   local n = (v.k == 'const' or v.k == 'num') and tonumber(ctx:specialise(v))
   if not n then argError(ctx, i, name, 'number', v) end
   return n
end

-- Basic ------------------------------------------------------------------------------------------------------------------------

models[type] = function(ctx, args)
   local v = args[1]
   if not v then argError(ctx, 1, 'type', 'value') end
   ctx:needType(v)
   return one(const(value.luatype(v)))
end

models[tostring] = function(ctx, args, via)
   local v = args[1] or NIL
   if v.k == 'gnum' then ctx:brk('data-dependent', 'tostring') end
   if v.k == 'const' or v.k == 'num' then return one(const(tostring(ctx:textOf(v)))) end
   local h = ops.metamethod(ctx, v, '__tostring')
   if h then
      ctx.via = via
      return ctx:call(h, {v, n = 1})
   end
   ctx:brk('needs-values', 'tostring of a ' .. value.luatype(v))
end

models[tonumber] = function(ctx, args)
   local v = args[1] or NIL
   if v.k == 'gnum' or v.k == 'num' then
      if args.n == 1 then return one(v) end
   elseif v.k ~= 'const' then
      return one(NIL)
   end
   local base = args[2] and ctx:specialise(args[2])
   return one(const(tonumber(ctx:specialise(v), base)))
end

models[select] = function(ctx, args)
   local s = args[1] or NIL
   if s.k == 'const' and s.v == '#' then return one(const(args.n - 1)) end
   local n = numberArg(ctx, args, 1, 'select')
   if n < 0 then n = args.n + n elseif n > args.n - 1 then n = args.n end
   if n < 1 then ctx:raise "bad argument #1 to 'select' (index out of range)" end
   local r = {n = args.n - n}
   for i = 1, r.n do r[i] = args[n + i] end
   return r
end

local function unpackModel(ctx, args)
   local t = tableArg(ctx, args, 1, 'unpack')
   local from = numberArg(ctx, args, 2, 'unpack', 1)
   local to = args[3] and not ctx:isNil(args[3]) and numberArg(ctx, args, 3, 'unpack') or ctx:rawlen(t)
   local r = {n = math.max(to - from + 1, 0)}
   for i = 1, r.n do r[i] = ctx:rawget(t, from + i - 1) end
   return r
end
models[unpack] = unpackModel

models[rawget] = function(ctx, args)
   return one(ctx:rawget(tableArg(ctx, args, 1, 'rawget'), ctx:key(args[2] or NIL)))
end
models[rawset] = function(ctx, args)
   local t = tableArg(ctx, args, 1, 'rawset')
   ctx:rawset(t, ctx:key(args[2] or NIL), args[3] or NIL)
   return one(t)
end
models[rawequal] = function(ctx, args) return bool(ops.rawequal(ctx, args[1] or NIL, args[2] or NIL)) end

models[next] = function(ctx, args)
   local t = tableArg(ctx, args, 1, 'next')
   local key = args[2] and not ctx:isNil(args[2]) and ctx:key(args[2]) or nil
   local k, v = ctx:next(t, key)
   if k == NIL then return one(NIL) end
   return {k, v, n = 2}
end

models[pairs] = function(ctx, args)
   return {ctx:constant(next), tableArg(ctx, args, 1, 'pairs'), NIL, n = 3}
end

local ipairsNext = ipairs {}
models[ipairsNext] = function(ctx, args)
   local i = const(ctx:specialise(args[2]) + 1)
   local v = ctx:rawget(args[1], i.v)
   if ctx:isNil(v) then return one(NIL) end
   ctx:needType(v)
   return {i, v, n = 2}
end
models[ipairs] = function(ctx, args)
   return {ctx:constant(ipairsNext), tableArg(ctx, args, 1, 'ipairs'), const(0), n = 3}
end

models[require] = function(ctx, args)
   local name = args[1] and ctx:need(args[1])
   local v = ctx:rawget(ctx:constant(package.loaded, 'package.loaded'), name)
   if not ctx:isNil(v) then return one(v) end
   -- Loading a module is what eager would do now, and doing it twice changes nothing; only ops must not be recorded.
   if ctx.graph or type(name) ~= 'string' then ctx:brk('side-effect', 'require of ' .. tostring(name)) end
   local ok, r = pcall(require, name)
   if not ok then ctx:raise(tostring(r)) end
   ctx:reload()
   return one(ctx:constant(r))
end

-- Metatables -------------------------------------------------------------------------------------------------------------------

local function metatableOf(ctx, v)
   if v.k == 'table' then return ctx:metatable(v) end
   if v.k == 'tensor' or v.k == 'udata' then
      ctx:needType(v)
      local mt = debug.getmetatable(v.real or v.fake)
      return mt and ctx:constant(mt, 'metatable')
   end
   if v.k == 'const' and type(v.v) == 'string' then return ctx:constant(getmetatable '') end
   if v.k == 'const' and type(v.v) ~= 'cdata' then ctx:needType(v) return end
   if v.k == 'num' or v.k == 'gnum' then return end
   if v.k == 'func' then return end
   ctx:brk('metatable', 'getmetatable')
end

models[getmetatable] = function(ctx, args)
   local mt = metatableOf(ctx, args[1] or NIL)
   if not mt then return one(NIL) end
   local protected = ctx:rawget(mt, '__metatable')
   if not ctx:isNil(protected) then return one(protected) end
   return one(mt)
end
models[debug.getmetatable] = function(ctx, args) return one(metatableOf(ctx, args[1] or NIL) or NIL) end

local function setmeta(ctx, t, mt, name)
   if mt.k == 'table' then ctx:setmetatable(t, mt)
   elseif ctx:isNil(mt) then ctx:setmetatable(t, nil)
   else argError(ctx, 2, name, 'nil or table', mt) end
   return one(t)
end

models[setmetatable] = function(ctx, args)
   local t = tableArg(ctx, args, 1, 'setmetatable')
   local old = ctx:metatable(t)
   if old and not ctx:isNil(ctx:rawget(old, '__metatable')) then ctx:raise 'cannot change a protected metatable' end
   return setmeta(ctx, t, args[2] or NIL, 'setmetatable')
end
models[debug.setmetatable] = function(ctx, args)
   local t = args[1] or NIL
   if t.k ~= 'table' then ctx:brk('metatable', 'debug.setmetatable') end
   ctx:metatable(t)
   return setmeta(ctx, t, args[2] or NIL, 'setmetatable')
end

-- A closure made inside takes another's variable.
models[debug.upvaluejoin] = function(ctx, args)
   local f, g = args[1] or NIL, args[3] or NIL
   if f.k ~= 'func' or not f.cells or g.k ~= 'func' then ctx:brk('c-function', 'debug.upvaluejoin') end
   f.cells[numberArg(ctx, args, 2, 'upvaluejoin')] = ctx:cell(g, numberArg(ctx, args, 4, 'upvaluejoin'))
   return {n = 0}
end

-- Errors -----------------------------------------------------------------------------------------------------------------------

-- Some versions put the caller's position in front of assert's message.
local assertPlaces = select(2, pcall(loadstring "assert(false, 'm')")) ~= 'm'

local cLevel = {pcall = true, xpcall = true, grad = true}

-- The frame at a level above the running function: a frame, false for a C function, nil and how many levels further when outside.
-- via: how the running function's results reach the innermost frame.
local function levelFrame(ctx, level, via)
   local i, n = #ctx.frames, 0
   if via and via.kind == 'tail' then via, i = ctx.frames[i].via, i - 1 end
   while true do
      while via and via.outer do
         n = n + (cLevel[via.kind] and 1 or 0)
         if n == level then return false end
         via = via.outer
      end
      local f = ctx.frames[i]
      n = n + 1
      if not f then return nil, level - n + 1 end
      if n == level then return f end
      via, i = f.via, i - 1
      if not via and i > 0 then
         n = n + 1
         if n == level then return false end
      end
   end
end

-- An error's value with the position of a level in front, if it is a string.
local function raised(ctx, v, level, via)
   if level > 0 and value.isNumber(v) then v = const(tostring(ctx:specialise(v))) end
   if v.k ~= 'const' or type(v.v) ~= 'string' or level <= 0 then error(breaks.raised(v), 0) end
   ctx:need(v)
   local f, above = levelFrame(ctx, level, via)
   if f then v = const(('%s: %s'):format(bytecode.where(f.proto, f.pc - 1), v.v)) end
   error(breaks.raised(v, nil, above and above + 1), 0)
end

models[error] = function(ctx, args, via)
   raised(ctx, args[1] or NIL, numberArg(ctx, args, 2, 'error', 1), via)
end

models[assert] = function(ctx, args, via)
   local v = args[1] or NIL
   if args.n == 0 then argError(ctx, 1, 'assert', 'value') end
   if ctx:truth(v) then return args end
   raised(ctx, args[2] or const 'assertion failed!', assertPlaces and 1 or 0, via)
end

-- Calls f; returns true and results, or false and the error's value. Breaks pass through.
local function protected(ctx, f, args, via)
   local depth = #ctx.frames
   ctx.via = via
   local ok, r = pcall(ctx.call, ctx, f, args)
   if ok then return true, r end
   if not breaks.isRaised(r) then error(r, 0) end
   if r.runtime and not r.exact then ctx:brk('error-in-pcall', r.runtime) end
   ctx:unwind(depth)
   return false, r.value
end

local function rest(args, from)
   local r = {n = math.max(args.n - from + 1, 0)}
   for i = 1, r.n do r[i] = args[from + i - 1] end
   return r
end

local function withTrue(r)
   local out = {TRUE, n = r.n + 1}
   for i = 1, r.n do out[i + 1] = r[i] or NIL end
   return out
end

models[pcall] = function(ctx, args, via)
   if args.n == 0 then argError(ctx, 1, 'pcall', 'value') end
   local ok, r = protected(ctx, args[1], rest(args, 2), via and {kind = 'pcall', outer = via})
   if ok then return withTrue(r) end
   return {FALSE, r, n = 2}
end

models[xpcall] = function(ctx, args, via)
   local ok, r = protected(ctx, args[1], rest(args, 3), via and {kind = 'xpcall', handler = args[2] or NIL, outer = via})
   if ok then return withTrue(r) end
   local h = ctx:call(args[2], {r, n = 1})
   local out = {FALSE, n = h.n + 1}
   for i = 1, h.n do out[i + 1] = h[i] end
   return out
end

-- Numbers ----------------------------------------------------------------------------------------------------------------------

local graphMath = {floor = 'floor', ceil = 'ceil', sqrt = 'sqrt', exp = 'exp', log = 'log', abs = 'abs', sin = 'sin', cos = 'cos', tan = 'tan',
   tanh = 'tanh', sinh = 'sinh', cosh = 'cosh', asin = 'asin', acos = 'acos', atan = 'atan', max = 'maximum', min = 'minimum', pow = 'pow'}

local function graphNumber(ctx, kind, name, args)
   local op = okC and graphMath[name] and C.op[graphMath[name]]
   if not op or args.n > 2 then ctx:brk('data-dependent', kind .. name) end
   return one {k = 'gnum', fake = ctx:callC(op, args)[1].fake}
end

-- kind: the library that the function is of.
local function mathModel(name, fn, kind)
   return function(ctx, args)
      local symbolic, numeric = false, true
      for i = 1, args.n do
         local v = args[i]
         if v.k == 'gnum' then return graphNumber(ctx, kind, name, args) end
         symbolic = symbolic or v.k == 'num'
         numeric = numeric and value.isNumber(v)
      end
      if symbolic and numeric and args.n <= 2 and args.n >= 1 then
         for i = 1, args.n do ctx:needNum(args[i]) end
         local a, b = args[1], args[2]
         local hint = b and fn(a.hint or a.v, b.hint or b.v) or fn(a.hint or a.v)
         return one(value.num({op = 'call', fn = fn, name = kind .. name, a = value.expr(a), b = b and value.expr(b)}, hint))
      end
      return ctx:callC(fn, args, kind .. name)
   end
end

for name, fn in pairs(math) do
   if type(fn) == 'function' then
      pure[fn] = 'math.' .. name
      if name ~= 'modf' and name ~= 'frexp' then models[fn] = mathModel(name, fn, 'math.') end
   end
end
for _, name in ipairs {'random', 'randomseed'} do
   models[math[name]], pure[math[name]] = nil, nil
   refused[math[name]] = {'side-effect', 'math.' .. name}
end

-- Strings ----------------------------------------------------------------------------------------------------------------------

for name, fn in pairs(string) do
   if type(fn) == 'function' and not bytecode.id(fn) then pure[fn] = 'string.' .. name end
end
pure[string.dump] = nil
if package.searchpath then pure[package.searchpath] = 'package.searchpath' end
for name, fn in pairs(require 'bit') do
   if type(fn) == 'function' then
      pure[fn] = 'bit.' .. name
      if name ~= 'tohex' then models[fn] = mathModel(name, fn, 'bit.') end
   end
end

models[string.len] = function(ctx, args)
   local v = args[1]
   if v and v.k == 'num' then v = const(tostring(ctx:textOf(v))) end
   if not v or v.k ~= 'const' or type(v.v) ~= 'string' and type(v.v) ~= 'number' then argError(ctx, 1, 'len', 'string', v) end
   return one(const(#tostring(ctx:need(v))))
end

-- What gsub puts for a match: the value of a function or table for its first capture; nothing or false keeps it.
local function replacement(ctx, by, captures)
   local v
   if by.k == 'func' then v = ctx:call(by, captures)[1] or NIL else v = ops.index(ctx, by, captures[1]) end
   if v.k == 'gnum' then ctx:brk('data-dependent', 'string.gsub') end
   if not ctx:truth(v) then return end
   local x = (v.k == 'const' or v.k == 'num') and ctx:textOf(v)
   if type(x) ~= 'string' and type(x) ~= 'number' then ctx:raise(('invalid replacement value (a %s)'):format(value.luatype(v))) end
   return x
end

models[string.gsub] = function(ctx, args)
   local by = args[3] or NIL
   if by.k ~= 'func' and by.k ~= 'table' then return ctx:callC(string.gsub, args, 'string.gsub') end
   local list = {}
   for i = 1, math.max(args.n, 2) do list[i] = i ~= 3 and ctx:raw(args[i] or NIL) end
   local ok, s, n = pcall(string.gsub, list[1], list[2], function(...)
      local captures = {n = select('#', ...)}
      for i = 1, captures.n do captures[i] = const((select(i, ...))) end
      return replacement(ctx, by, captures)
   end, list[4])
   if not ok and type(s) ~= 'string' then error(s, 0) end -- a break, or an error of the program, in the function
   if not ok then ctx:raise((s:gsub('^.-:%d+: ', ''))) end
   return {const(s), const(n), n = 2}
end

models[string.gmatch] = function(ctx, args)
   local s, pattern = ctx:specialise(args[1]), ctx:specialise(args[2])
   local matches, at = {}, 0
   local function keep(...)
      if select('#', ...) == 0 or (...) == nil then return false end
      matches[#matches + 1] = {n = select('#', ...), ...}
      return true
   end
   local iterator = s:gmatch(pattern)
   while keep(iterator()) do end
   return one {k = 'func', at = ctx.frames[#ctx.frames].at, model = function()
      at = at + 1
      local m = matches[at]
      if not m then return one(NIL) end
      local r = {n = m.n}
      for i = 1, m.n do r[i] = const(m[i]) end
      return r
   end}
end

-- Tables -----------------------------------------------------------------------------------------------------------------------

models[table.insert] = function(ctx, args)
   local t = tableArg(ctx, args, 1, 'insert')
   if args.n == 2 and ctx:append(t, args[2]) then return {n = 0} end
   local n = ctx:rawlen(t) + 1
   if args.n == 2 then ctx:rawset(t, n, args[2]) return {n = 0} end
   if args.n ~= 3 then ctx:raise "wrong number of arguments to 'insert'" end
   local pos = numberArg(ctx, args, 2, 'insert')
   if pos > n then n = pos end
   for i = n, pos + 1, -1 do ctx:rawset(t, i, ctx:rawget(t, i - 1)) end
   ctx:rawset(t, pos, args[3])
   return {n = 0}
end

models[table.remove] = function(ctx, args)
   local t = tableArg(ctx, args, 1, 'remove')
   local n = ctx:rawlen(t)
   if args.n == 1 then
      if n == 0 then return {n = 0} end
      local v = ctx:rawget(t, n)
      ctx:rawset(t, n, NIL)
      return one(v)
   end
   local pos = numberArg(ctx, args, 2, 'remove')
   if pos < 1 or pos > n then return {n = 0} end
   local v = ctx:rawget(t, pos)
   for i = pos, n - 1 do ctx:rawset(t, i, ctx:rawget(t, i + 1)) end
   ctx:rawset(t, n, NIL)
   return one(v)
end

models[table.concat] = function(ctx, args)
   local t = tableArg(ctx, args, 1, 'concat')
   local sep = args[2] and not ctx:isNil(args[2]) and tostring(ctx:specialise(args[2])) or ''
   local from = numberArg(ctx, args, 3, 'concat', 1)
   local to = args[4] and numberArg(ctx, args, 4, 'concat') or ctx:rawlen(t)
   local parts = {}
   for i = from, to do
      local v = ctx:rawget(t, i)
      if v.k == 'gnum' then ctx:brk('data-dependent', 'table.concat') end
      local x = (v.k == 'const' or v.k == 'num') and ctx:textOf(v)
      if type(x) ~= 'string' and type(x) ~= 'number' then
         ctx:raise(("bad argument #1 to 'concat' (invalid value (%s) at index %d in table for 'concat')"):format(value.luatype(v), i))
      end
      parts[#parts + 1] = x
   end
   return one(const(table.concat(parts, sep)))
end

models[table.maxn] = function(ctx, args)
   local t, n = tableArg(ctx, args, 1, 'maxn'), 0
   for _, key in ipairs(ctx:keys(t)) do
      if type(key) == 'number' and key > n then n = key end
   end
   return one(const(n))
end
local function each(name, keys)
   return function(ctx, args)
      local t, f = tableArg(ctx, args, 1, name), args[2] or NIL
      for _, key in ipairs(keys(ctx, t)) do
         local v = ctx:rawget(t, key)
         if not ctx:isNil(v) then
            local r = ctx:call(f, {ctx:keyValue(key), v, n = 2})[1] or NIL
            if not ctx:isNil(r) then return one(r) end
         end
      end
      return {n = 0}
   end
end
models[table.foreach] = each('foreach', function(ctx, t) return ctx:keys(t) end)
models[table.foreachi] = each('foreachi', function(ctx, t)
   local list = {}
   for i = 1, ctx:rawlen(t) do list[i] = i end
   return list
end)
models[table.getn] = function(ctx, args) return one(const(ctx:rawlen(tableArg(ctx, args, 1, 'getn')))) end

-- Quicksort as the library does it, so that elements that compare equal end in the same places.
local function sort(ctx, a, lo, up, less)
   local function swapIf(i, j)
      if less(a[j], a[i]) then a[i], a[j] = a[j], a[i] end
   end
   while lo < up do
      swapIf(lo, up)
      if up - lo == 1 then break end
      local i = math.floor((lo + up) / 2)
      if less(a[i], a[lo]) then a[i], a[lo] = a[lo], a[i]
      elseif less(a[up], a[i]) then a[i], a[up] = a[up], a[i] end
      if up - lo == 2 then break end
      local pivot = a[i]
      a[i], a[up - 1] = a[up - 1], a[i]
      i = lo
      local j = up - 1
      while true do
         i = i + 1
         while less(a[i], pivot) do
            if i >= up then ctx:raise 'invalid order function for sorting' end
            i = i + 1
         end
         j = j - 1
         while less(pivot, a[j]) do
            if j <= lo then ctx:raise 'invalid order function for sorting' end
            j = j - 1
         end
         if j < i then break end
         a[i], a[j] = a[j], a[i]
      end
      a[up - 1], a[i] = a[i], a[up - 1]
      local f, t
      if i - lo < up - i then
         f, t, lo = lo, i - 1, i + 1
      else
         f, t, up = i + 1, up, i - 1
      end
      sort(ctx, a, f, t, less)
   end
end

models[table.sort] = function(ctx, args)
   local t, f = tableArg(ctx, args, 1, 'sort'), args[2]
   local n, a = ctx:rawlen(t), {}
   for i = 1, n do a[i] = ctx:rawget(t, i) end
   local less = function(x, y) return ops.order(ctx, 'lt', x, y) end
   if f and not ctx:isNil(f) then
      less = function(x, y) return ctx:truth(ctx:call(f, {x or NIL, y or NIL, n = 2})[1] or NIL) end
   end
   sort(ctx, a, 1, n, less)
   for i = 1, n do ctx:rawset(t, i, a[i]) end
   return {n = 0}
end

-- Refused ----------------------------------------------------------------------------------------------------------------------

refused[print] = {'side-effect', 'print'}
refused[collectgarbage] = {'side-effect', 'collectgarbage'}
for lib, names in pairs {io = 'close flush input lines open output popen read tmpfile write',
   os = 'clock date difftime execute exit getenv remove rename setlocale time tmpname'} do
   for name in names:gmatch '%S+' do
      local f = _G[lib] and _G[lib][name]
      if f then refused[f] = {'side-effect', lib .. '.' .. name} end
   end
end
for name, fn in pairs(coroutine) do refused[fn] = {'coroutine', 'coroutine.' .. name} end
for _, m in pairs {io.stdout, io.stderr} do
   for name, fn in pairs(getmetatable(m).__index) do
      if type(fn) == 'function' then refused[fn] = {'side-effect', 'file:' .. name} end
   end
end

-- Storages (sizes above all): what reads them folds, their contents are guarded when they come from outside.
if okC then
   for name in pairs(C.storages) do
      for key, fn in pairs(C.metatables and C.metatables[name] or {}) do
         if type(fn) == 'function' and not bytecode.id(fn) then
            if ('totable size __len string elementSize'):find(key, 1, true) then call.storage[fn] = 'read'
            elseif ('fill copy resize __newindex'):find(key, 1, true) then call.storage[fn] = 'write' end
         end
      end
   end
end

-- Gradient mode and predicates of the core -------------------------------------------------------------------------------------

if okC then
   models[C.setGradEnabled] = function(ctx, args) return bool(ctx:setGrad(ctx:truth(args[1] or NIL))) end
   models[C.setAutocast] = function(ctx, args) -- set while capturing; back at its first value when capture ends
      local name = args[1] and ctx:need(args[1]) or nil
      local was = C.setAutocast(name)
      if ctx.castStart == nil then ctx.castStart = was or false end
      return {{k = 'const', v = was}, n = 1}
   end
   models[C.gradEnabled] = function(ctx) return bool(ctx:gradMode()) end

   local function withGrad(on)
      return function(ctx, args, via)
         local was = ctx:setGrad(on)
         ctx.via = via and {kind = 'grad', was = was, outer = via}
         local ok, r = pcall(ctx.call, ctx, args[1] or NIL, rest(args, 2))
         if not ok and not breaks.isRaised(r) then error(r, 0) end -- a break inside: what follows runs in the mode it is in
         ctx:setGrad(was)
         if not ok then error(r, 0) end
         return r
      end
   end
   models[C.torch.noGrad] = withGrad(false)
   models[C.torch.enableGrad] = withGrad(true)

   models[C.torch.isTensor] = function(ctx, args)
      local v = args[1] or NIL
      ctx:needType(v)
      return bool(v.k == 'tensor')
   end
   if C.torch.isStorage then
      local isStorage = C.torch.isStorage
      models[isStorage] = function(ctx, args)
         local v = args[1] or NIL
         ctx:needType(v)
         return bool(v.k == 'udata' and isStorage(v.real))
      end
   end
end

return {}
