-- Statements: functions inside, shared upvalues, closures that leave, coroutines (generator -> lines).

local Gen = require 'fuzz.generate'
local S = {}

-- A function of one vector, with statements of its own.
local function define(g, open, close)
   g:line(open)
   local fixed = g.fixed
   g.fixed = true
   g:block(function()
      table.insert(g.vars.vec, 'a')
      g:statements(g:pick(2))
      g:line('return %s', g:vec(1))
   end)
   g.fixed = fixed
   g:line(close)
end

function S.func(g)
   local name = g:name 'f'
   define(g, ('local function %s(a)'):format(name), 'end')
   table.insert(g.vars.fun, name)
end

function S.counter(g)
   local c, up, get = g:name 'c', g:name 'f', g:name 'f'
   g:line('local %s = %s', c, g:num(1))
   g:line('local function %s(d) %s = %s + (d or 1) return %s end', up, c, c, c)
   g:line('local function %s() return %s end', get, c)
   g:line('%s(%s) %s()', up, g:num(1), up)
   if g:chance(2) then g:line('%s = %s * 2', c, c) end
   g:line('log[#log + 1] = %s()', get)
   if g:chance(3) then g:line('t.up, t.get = %s, %s', up, get) end
   table.insert(g.vars.num, c)
end

function S.called(g) g:line 'if t.up then t.up(2) log[#log + 1] = t.get() end' end

function S.holder(g)
   local v, name = g:name 'h', g:name 'f'
   g:line('local %s = %s', v, g:vec(1))
   g:line('local function %s(a) %s = %s + a return %s end', name, v, v, v)
   table.insert(g.vars.vec, v)
   table.insert(g.vars.fun, name)
   if g:chance(3) then g:line('t.hold = %s', name) end
end

function S.loopClosures(g)
   local name = g:name 'q'
   g:line('local %s = {}', name)
   g:line('for i = 1, 3 do')
   g:line('   local k = i * %s', g:one(g.vars.num))
   g:line('   %s[i] = function(d) k = k + d return k + i end', name)
   g:line('end')
   g:line('%s[1](1) %s[2](%s)', name, name, g:num(1))
   g:line('log[#log + 1] = %s[%d](2)', name, g:pick(3))
   if g:chance(3) then g:line('t.fs = %s', name) end
end

function S.maker(g)
   local name, made = g:name 'f', g:name 'f'
   g:line('local function %s(s) return function(a) s = s + 1 return a * s end end', name)
   g:line('local %s = %s(%s)', made, name, g:num(1))
   table.insert(g.vars.fun, made)
   if g:chance(3) then g:line('t.made = %s', made) end
end

function S.madeBefore(g) g:line(g:one {'if t.made then last = t.made(x) end', 'if t.fs then log[#log + 1] = t.fs[1](1) end'}) end

function S.recursive(g)
   local name = g:name 'f'
   g:line('local function %s(k) if k <= 0 then return 0 end return k + %s(k - 1) end', name, name)
   g:let('num', 'n', '%s(%d)', name, g:pick(4))
end

function S.tail(g)
   local name = g:name 'f'
   g:line('local function %s(k, a) if k <= 0 then return a end return %s(k - 1, a * 0.5) end', name, name)
   g:let('vec', 'a', '%s(%d, %s)', name, g:pick(3), g:vec(1))
end

function S.each(g) g:line('lib.each({%s, %s}, function(v) count = count + 1 %s:add(v * 0.1) end)', g:num(1), g:num(1), g:anyVec()) end
function S.swapHelper(g) g:line(g:one {'helper, other = other, helper', 'helper = function(a, s) return a * 2 + s end',
   'last = helper(x, count)'}) end
function S.upvalue(g) g:line('last = %s', g:vec()) end

function S.coroutine(g)
   local name = g:name 'co'
   g:line('local %s = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) count = count + 1 return b * 2 end)', name)
   g:line('log[#log + 1] = %s(%s)', name, g:num(1))
   g:line('log[#log + 1] = %s(3)', name)
end

function S.disabled(g) g:line('lib.note(log, %s)', g:one {g:num(1), g:vec(1), 't.n', 'x'}) end
function S.gsub(g) g:line("log[#log + 1] = (%s):gsub('%%a', function(c) count = count + 1 return c .. c end)", g:str(1)) end
function S.environment(g) g:line('log[#log + 1] = lib.inner(%s, %s)', g:num(1), g:vec(1)) end

Gen.family('closures', S, {func = true})
