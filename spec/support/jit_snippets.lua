-- Programs for the evaluator: each source returns a function, its argument lists, and optionally what it changes outside.
-- Run eagerly and compiled from fresh copies; results and outside state must agree, call by call.

-- luacheck: ignore 631
return {
   arithmetic = [[return function(a, b) return a + b, a - b, a * b, a / b, a % b, a ^ b, -a, a .. b, 2 - a, 10 / b, 7 % a, '3' + a, 1e300 * 10 end,
      {{3, 4}, {5, 2}, {-1.5, 2}, {7, 7}}]],
   comparisons = [[return function(a, b) local r = {} r[1] = a < b r[2] = a <= b r[3] = a > b r[4] = a >= b r[5] = a == b r[6] = a ~= b
      r[7] = a == 3 r[8] = a ~= 3 r[9] = not a r[10] = (a and b) or 9 r[11] = a == 'x' r[12] = a == nil return r end, {{3, 4}, {4, 3}, {3, 3}}]],
   strings = [[return function(s) return s:upper(), #s, s .. '!', s:sub(2, 3), ('%s-%d'):format(s, 5), s < 'm', s:rep(2), s:gsub('a', 'b'), s:find 'l'
      end, {{'hallo'}, {'world'}, {'hallo'}}]],
   numericFor = [[return function(n) local s = 0 for i = 1, n do s = s + i end for i = n, 1, -2 do s = s * i end for i = 3, 1 do s = -1 end
      for i = 0, 1, 0.25 do s = s + i end return s end, {{3}, {5}, {3}}]],
   whileLoop = [[return function(n) local i, t = 0, {} while i < n do i = i + 1 if i % 3 == 0 then t[#t + 1] = i end end
      repeat local j = i i = i - 1 until j < 3 return i, t end, {{10}, {4}}]],
   breakAndGoto = [[return function(n) local out = {} for i = 1, n do for j = 1, n do if j == i then goto continue end if j > 3 then break end
      out[#out + 1] = i * 10 + j ::continue:: end end return out end, {{4}, {5}}]],
   pairsLoop = [[local t = {10, 20, x = 1, y = 2} return function() local n, s = 0, '' for k, v in pairs(t) do n = n + v s = s .. tostring(k) end return n, s end,
      {{}, {}}, t]],
   pairsOfNew = [[return function(a) local t = {a = 1, b = 2, 3, 4} t.c = a t.b = nil local s = {} for k, v in pairs(t) do s[#s + 1] = tostring(k) .. tostring(v) end
      table.sort(s) return table.concat(s, ','), next({}), next({7}) end, {{5}, {'z'}}]],
   ipairsHoles = [[return function(t) local s = 0 for i, v in ipairs(t) do s = s + i * v end return s, #t end, {{{1, 2, 3}}, {{4, 5}}, {{}}}]],
   closures = [[return function(n) local fs = {} for i = 1, 3 do fs[i] = function(d) i = i + d return i * n end end
      return fs[1](1), fs[1](1), fs[2](5), fs[3](0) end, {{2}, {3}}]],
   sharedUpvalue = [[local count = 0 local function add() count = count + 1 return count end
      return function(k) add() count = count * k return add(), count end, {{1}, {2}, {3}}, function() return count end]],
   recursion = [[local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end return function(n) return fib(n) end, {{8}, {10}}]],
   mutual = [[local even local function odd(n) if n == 0 then return false end return even(n - 1) end
      function even(n) if n == 0 then return true end return odd(n - 1) end return function(n) return even(n), odd(n) end, {{6}, {7}}]],
   tailCalls = [[local function loop(n, acc) if n == 0 then return acc, 'end' end return loop(n - 1, acc + n) end return function(n) return loop(n, 0) end, {{300}, {5}}]],
   varargs = [[local function f(...) return select('#', ...), ... end
      return function(...) local a, b = ... local t = {...} local n = select('#', ...) return a, b, #t, n, (select(-1, 1, ...)), f(...), f(nil, ...) end,
      {{1, 2, 3}, {4}, {nil, 5}}]],
   varargTail = [[local function g(...) return ... end return function(...) return g(0, g(...)) end, {{1, 2}, {}, {nil, nil, 3}}]],
   multiAssign = [[local function two() return 1, 2 end return function() local a, b, c = two() local d, e = (two()) local t = {two(), two()} return a, b, c, d, e, t, (two()) end, {{}}]],
   metaArithmetic = [[local V = {} V.__index = V local function new(x) return setmetatable({x = x}, V) end
      V.__add = function(a, b) return new((type(a) == 'number' and a or a.x) + (type(b) == 'number' and b or b.x)) end
      V.__unm = function(a) return new(-a.x) end V.__eq = function(a, b) return a.x == b.x end V.__lt = function(a, b) return a.x < b.x end
      V.__le = function(a, b) return a.x <= b.x end V.__concat = function(a, b) return 'c' .. tostring(type(b)) end V.__call = function(s, k) return s.x * k end
      function V:get() return self.x end
      return function(k) local a, b = new(k), new(2) local c = a + b + 1 return c.x, (-c):get(), a == b, a < b, a <= b, a > b, a .. 'x', c(3), a ~= b end, {{1}, {2}, {3}}]],
   metaIndex = [[local log = {} local base = {greet = function(self) return 'hi ' .. self.name end}
      local mt = {__index = function(t, k) log[#log + 1] = k return base[k] end, __newindex = function(t, k, v) rawset(t, '_' .. k, v) end}
      return function(n) local o = setmetatable({name = n}, mt) o.y = 5 return o:greet(), o._y, rawget(o, 'y'), o.none end, {{'a'}, {'b'}}, log]],
   inheritance = [[local A = {} A.__index = A function A.new(x) return setmetatable({x = x}, A) end function A:f() return self.x end function A:g() return 'A' .. self:f() end
      local B = setmetatable({}, {__index = A}) B.__index = B function B:f() return A.f(self) * 2 end
      local o = setmetatable({x = 4}, B) return function() o.x = o.x + 1 return o:g(), o:f(), getmetatable(o) == B end, {{}, {}, {}}, o]],
   pcallLua = [[return function(x) local ok, e = pcall(function(y) if y > 2 then error('big', 0) end return y * 2, 'second' end, x)
      local ok2, e2 = pcall(error, {code = 7}) local ok3, e3 = pcall(error) return ok, e, ok2, e2.code, ok3, e3 end, {{1}, {3}}]],
   errorPosition = [[local function fail() error('bad thing') end local function fail2() error('level two', 2) end
      return function() local a, b = pcall(fail) local c, d = pcall(function() fail2() end) return a, b, c, d end, {{}}]],
   xpcallHandler = [[return function(x) return xpcall(function() if x == 2 then error("two") end return x end, function(e) return "handled " .. tostring(e) end) end, {{1}, {2}}]],
   tableLibrary = [[return function(n) local t = {5, 3, 8, 1} table.insert(t, n) table.insert(t, 1, 9) local r = table.remove(t) local q = table.remove(t, 2) table.sort(t)
      local c = table.concat(t, ',') table.sort(t, function(a, b) return a > b end) return r, q, c, table.concat(t, '-', 2), #t, unpack(t) end, {{4}, {7}}]],
   sortTies = [[return function() local t = {} for i = 1, 12 do t[i] = {k = i % 3, i = i} end table.sort(t, function(a, b) return a.k < b.k end)
      local s = {} for i, e in ipairs(t) do s[i] = e.i end return s end, {{}}]],
   mathLibrary = [[return function(x) return math.floor(x), math.max(x, 2), math.min(1, x, 3), math.sqrt(x * x), math.abs(-x), math.huge, math.pi, math.fmod(7, 3), math.pow(x, 2), bit.band(255, 15) end, {{2.5}, {3.5}}]],
   numbersKept = [[local st = {t = 0, lr = 0.1} return function() st.t = st.t + 1 st.lr = st.lr * 0.5 return st.lr / (1 + st.t * 0.01) end, {{}, {}, {}, {}}, st]],
   counterFromNil = [[local st = {} return function() st.n = (st.n or 0) + 1 return st.n end, {{}, {}, {}, {}}, st]],
   deleteFields = [[local st = {a = 1, b = 2, 10, 20, 30} return function(k) st[k] = nil st[#st + 1] = 'end' return #st, st.a, st.b end, {{'a'}, {'b'}, {3}}, st]],
   newTableEscapes = [[local keep = {} return function(x) local t = {x = x, list = {1, 2, x}} t.self = t keep[#keep + 1] = t return t.list, #keep end, {{1}, {2}}, keep]],
   closureEscapes = [[return function(x) local n = x local function inc(d) n = n + d return n end local function get() return n end inc(10) return inc, get end,
      {{1}, {2}}, nil, function(inc, get) return inc(5), get(), inc(1), get() end]],
   recursiveClosureEscapes = [[return function(x) local function fact(n) if n == 0 then return x end return n * fact(n - 1) end return fact end, {{1}, {2}}, nil, function(f) return f(4) end]],
   methodsOnStrings = [[return function(s) local out = {} for w in s:gmatch '%a+' do out[#out + 1] = w:lower() end return table.concat(out, ' '), s:byte(1), tostring(12), tonumber '0x10', tonumber('z', 36) end, {{'Ab Cd'}, {'Xy'}}]],
   nestedTables = [[local cfg = {a = {b = {c = 3}}, list = {{1}, {2}}} return function(i) cfg.a.b.c = cfg.a.b.c + cfg.list[i][1] cfg.a.d = cfg.a.b return cfg.a.d.c end, {{1}, {2}, {1}}, cfg]],
   aliasedTables = [[local t = {n = 1} local u = {t, t} return function() u[1].n = u[2].n + 1 u[2].n = u[1].n * 2 return t.n end, {{}, {}}, t]],
   argumentTables = [[return function(o) o.count = (o.count or 0) + (o.step or 1) return o.count, o end, {{{step = 2}}, {{step = 3}}, {{}}, {{count = 5}}}]],
   sameTableTwice = [[return function(a, b) a.x = 1 b.x = b.x + 1 return a.x, b.x, a == b end, {{{x = 5}, {x = 7}}, {{x = 1}, {x = 2}}}]],
   booleansAndNil = [[return function(a, b) return a and b, a or b, not a, a == b, (a and 1 or 2), type(a), type(b) end, {{true, false}, {nil, 1}, {false, nil}, {'s', {}}}]],
   typeChanges = [[return function(x) if type(x) == 'number' then return x + 1 elseif type(x) == 'string' then return x .. '!' elseif type(x) == 'table' then return #x end return 'none' end,
      {{1}, {'a'}, {{1, 2}}, {}, {2}, {'b'}}]],
   globalsUsed = [[jitSpecGlobal = 1 return function(d) jitSpecGlobal = jitSpecGlobal + d return jitSpecGlobal, jitSpecNone end, {{1}, {2}}, function() return jitSpecGlobal end]],
   rawFunctions = [[local t = setmetatable({}, {__index = function() return 1 end, __newindex = function() end, __eq = function() return true end})
      return function(k) rawset(t, k, 3) return t.zzz, rawget(t, 'zzz'), rawget(t, k), rawequal(t, {}), t == t end, {{'a'}, {'b'}}, t]],
   negativeZeroAndNan = [[return function(x) local n = x - x local z = -n local nan = n / n return 1 / z, nan ~= nan, nan == nan, z == n end, {{1}, {2}}]],
   upvalueClosing = [[return function() local fs = {} local k = 0 while k < 3 do k = k + 1 local j = k fs[k] = function() j = j + 1 return j end end return fs[1](), fs[1](), fs[2](), fs[3]() end, {{}}]],
   longConcat = [[return function(a, b) return a .. 1 .. b .. 2.5 .. (a .. b) end, {{'x', 'y'}, {'p', 'q'}}]],
   iterator = [[local function range(n) local i = 0 return function() i = i + 1 if i <= n then return i, i * i end end end
      return function(n) local s = 0 for i, q in range(n) do s = s + i * q end return s end, {{3}, {4}}]],
   statefulIterator = [[local function nextOdd(t, i) i = i + 2 if t[i] then return i, t[i] end end
      return function(t) local s = {} for i, v in nextOdd, t, -1 do s[#s + 1] = v end return s end, {{{1, 2, 3, 4, 5}}, {{9, 8, 7}}}]],
   metatableSet = [[local mt = {__index = {q = 5}} local o = {} return function(on) if on then setmetatable(o, mt) else setmetatable(o, nil) end return o.q, getmetatable(o) == mt end,
      {{true}, {false}, {true}}, o]],
   switchKeys = [[local ops = {add = function(a, b) return a + b end, mul = function(a, b) return a * b end} return function(k, a, b) return ops[k](a, b) end, {{'add', 1, 2}, {'mul', 3, 4}, {'add', 5, 6}}]],
   tableHoles = [[return function() local t = {1, nil, 3} t[5] = 5 local n = 0 for _ in pairs(t) do n = n + 1 end return n, t[2], t[3], t[5] end, {{}}]],
   unpackRange = [[return function(t) return unpack(t, 2, 4) end, {{{1, 2, 3, 4, 5}}, {{1}}}]],
   swap = [[local a, b = 1, 2 return function() a, b = b, a return a, b end, {{}, {}, {}}, function() return a, b end]],
   nextWhileClearing = [[return function() local t = {a = 1, b = 2, c = 3} local n = 0 for k in pairs(t) do t[k] = nil n = n + 1 end return n, next(t) end, {{}}]],
}
