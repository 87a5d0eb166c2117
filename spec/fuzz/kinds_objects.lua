-- Statements: metatables with metamethods, classes, torch classes (generator -> lines).

local Gen = require 'fuzz.generate'
local S = {}

function S.method(g) g:let('num', 'n', 'object:value(%s)', g:num(1)) end
function S.methodVec(g) g:let('vec', 'a', 'object:scaled(%s)', g:vec(1)) end
function S.own(g) g:line('object.own = %s', g:one {'object.own + 1', g:num(1), 'nil or object.own'}) end
function S.factor(g) g:line('Class.factor = %s', g:one {'Class.factor + 1', 'n'}) end
function S.more(g) g:line 'if object.more then log[#log + 1] = object:more(n) end' end
function S.missing(g) g:line('log[#log + 1] = object.%s', g:one {'factor', 'own', 'nothing', 'computed'}) end

function S.added(g)
   local name = g:name 'o'
   g:line('local %s = %s', name, g:one {'object + 1', 'object + object', '2 + object', 'object * 2', '-object', 'object ^ 2',
      'object % 2', 'object / 2'})
   g:line('log[#log + 1] = %s.own', name)
end

function S.compared(g)
   g:line('log[#log + 1] = %s', g:one {'object == lib.new(Class, {own = 1})', 'object < lib.new(Class, {own = n})', 'object <= object',
      'object > object',
      'object ~= object', 'object .. "s"', '"s" .. object', '1 .. object', 'tostring(object)', 'object(n)', 'object(1, 2)'})
end

function S.inside(g)
   local name = g:name 'o'
   g:line('local %s = setmetatable({v = %s}, {', name, g:num(1))
   g:line('   __index = %s,', g:one {'function(_, k) return k == "w" and n or nil end', 'cfg', '{w = count}'})
   g:line('   __newindex = %s,', g:one {'function(s, k, v) rawset(s, k, v) count = count + 1 end', 'log', 'nil'})
   g:line('   __call = function(s, a, b) return s.v + (a or 0) end,')
   g:line('   __add = function(a, b) return n end, __eq = function() return true end, __lt = function() return flag end,')
   g:line '})'
   g:line('%s.z = %s', name, g:num(1))
   g:line('log[#log + 1] = %s', g:one {name .. '.w', name .. '(2)', name .. ' + 1', name .. '.z',
      'getmetatable(' .. name .. ').__call(' .. name .. ', 1)', name .. ' < ' .. name})
   if g:chance(3) then g:line('t.object = %s', name) end
end

function S.proxy(g)
   local name = g:name 'o'
   g:line('local %s = setmetatable({}, {__index = t, __newindex = function(_, k, v) t[k] = v end})', name)
   g:line('%s.n = (%s.n or 0) + 1', name, name)
end

function S.inherit(g)
   local name = g:name 'Sub'
   g:line('local %s = setmetatable({}, {__index = Class})', name)
   g:line('%s.__index = %s', name, name)
   g:line('function %s:value(v) return Class.value(self, v) + 1 end', name)
   g:let('num', 'n', 'lib.new(%s, {own = %s}):value(%s)', name, g:num(1), g:num(1))
end

function S.acc(g) g:line('acc:add(%s)', g:vec(1)) end
function S.accValue(g) g:let('num', 'n', 'acc:mean()') end
function S.accNew(g)
   local name = g:name 'o'
   g:line('local %s = %s(%s)', name, g:one {'lib.Acc', 'lib.SubAcc'}, g:num(1))
   g:line('%s:add(%s)', name, g:vec(1))
   g:line('log[#log + 1] = %s:mean()', name)
   if g:chance(3) then g:line('t.acc = %s', name) end
end
function S.accType(g) g:line('log[#log + 1] = %s', g:one {'torch.type(acc)', 'torch.typename(acc)', 'torch.isTypeOf(acc, "fuzz.Acc")',
   'torch.isTensor(acc)', 'tostring(acc)'}) end
function S.accField(g) g:line('acc.%s = %s', g:one {'steps', 'extra'}, g:num(1)) end
function S.protected(g) g:line(g:one {'log[#log + 1] = getmetatable(lib.locked)', 'log[#log + 1] = pcall(setmetatable, lib.locked, {})',
   'setmetatable(log, nil)',
   'setmetatable(t, {__index = cfg})', 'setmetatable(t, nil)'}) end

Gen.family('objects', S)
