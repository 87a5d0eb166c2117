-- Statements: branches, loops, goto, strings, calls with variable arguments, early returns (generator -> lines).

local Gen = require 'fuzz.generate'
local S = {}

function S.newNumber(g) g:let('num', 'n', '%s', g:num()) end
function S.newString(g) g:let('str', 's', '%s', g:str()) end
function S.assign(g)
   local name = g:one(g.vars.num)
   g:line('%s = %s', name, g:num())
end
function S.assignString(g)
   local name = g:one(g.vars.str)
   if name ~= 'cfg.name' then g:line('%s = %s', name, g:str()) end
end
function S.count(g) g:line 'count = count + 1' end
function S.output(g) g:line "io.write('')" end
function S.text(g) g:line("local _ = 'v ' .. %s", g:num()) end

function S.branch(g)
   g:line('if %s then', g:test())
   g:body()
   if g:chance(3) then
      g:line('elseif %s then', g:test())
      g:body(1)
   end
   if g:chance(2) then
      g:line 'else'
      g:body()
   end
   g:line 'end'
end

function S.loop(g)
   local i = g:name 'i'
   g:line('for %s = %s do', i, g:one {'1, 2', '1, 3', '3, 1, -1', '0, 1, 0.5', '2, 1', '1, #t', '1, x:dim() + 1', '1, cfg.scale',
      'n, n + 1'})
   g:block(function()
      table.insert(g.vars.num, i)
      g:statements(g:pick(3))
      if g:chance(4) then g:line('if %s then break end', g:test()) end
   end)
   g:line 'end'
end

function S.whileLoop(g)
   local i = g:name 'k'
   g:line('local %s = 0', i)
   g:line('while %s < 4 and (%s) do', i, g:test())
   g:block(function()
      g:line('%s = %s + 1', i, i)
      g:statements(g:pick(3))
   end)
   g:line 'end'
end

function S.repeatLoop(g)
   local i, done = g:name 'k', g:name 'd'
   g:line('local %s = 0', i)
   g:line 'repeat'
   g:block(function()
      g:line('%s = %s + 1', i, i)
      g:statements(g:pick(2))
      g:line('local %s = %s', done, g:test())
   end)
   g:line('until %s > 2 or %s', i, done)
end

function S.gotoLoop(g)
   local i, label = g:name 'k', g:name 'again'
   g:line('local %s = 0', i)
   g:line('::%s::', label)
   g:line 'do'
   g:body(g:pick(2))
   g:line 'end'
   g:line('%s = %s + 1', i, i)
   g:line('if %s < 3 and (%s) then goto %s end', i, g:test(), label)
end

function S.continueLoop(g)
   local i, label = g:name 'i', g:name 'continue'
   g:line('for %s = 1, 3 do', i)
   g:line('   if %s then goto %s end', g:test(), label)
   g:line '   do'
   g:block(function()
      table.insert(g.vars.num, i)
      g:statements(g:pick(2))
   end)
   g:line '   end'
   g:line('   ::%s::', label)
   g:line 'end'
end

function S.over(g)
   local k, v = g:name 'k', g:name 'v'
   g:line('for %s, %s in %s do', k, v, g:one {'ipairs {t[1], t[2], t[3]}', 'ipairs {1, 2, 3}', 'ipairs {count, 2}', 'ipairs(cfg.list)',
      'lib.steps(3)',
      'lib.stateless, 3, 0', 'pairs {5}', 'next, {7}'})
   g:block(function()
      table.insert(g.vars.num, k)
      table.insert(g.vars.num, v)
      g:statements(g:pick(2))
   end)
   g:line 'end'
end

function S.sumPairs(g)
   local name = g:let('num', 'n', '0')
   g:line('for k, v in pairs(%s) do if type(v) == "number" then %s = %s + v end end', g:one {'cfg', 't', 'cfg.inner.deep',
      '{a = 1, b = n}'}, name, name)
end

-- Elements one by one: the bound is a size.
function S.elements(g)
   local v, name = g:anyVec(), g:let('num', 'n', '0')
   g:line('for i = %s do', g:one {'1, ' .. v .. ':size(1)', v .. ':size(1), 1, -1', '1, ' .. v .. ':size(1), 2', '2, #' .. v .. ':size() + 1'})
   g:line('   %s', g:one {name .. ' = ' .. name .. ' + ' .. v .. '[i]', 'if ' .. v .. '[i] > 0 then ' .. name .. ' = ' .. name .. ' + 1 end',
      v .. '[i] = ' .. v .. '[i] * i', v .. '[i] = i', name .. ' = i * ' .. v .. ':size(1)'})
   g:line 'end'
end

-- Numbers that become text or keys.
function S.numberText(g)
   g:line('log[#log + 1] = %s', g:one {"('%.2f'):format(n / 3)", 'tostring(count)', "'n' .. n .. 'c' .. count", "(n .. ''):len()", 'tostring(n * 2):rep(2)',
      "('%d'):format(x:size(1))", 'tostring(x:size(1)):byte()', "('%5.1f|%-4d'):format(count / 4, count)", 'tonumber(tostring(n)) + 1', "#('x'):rep(count % 4)"})
end

function S.bits(g)
   g:let('num', 'n', '%s', g:one {'bit.bor(count, 4)', 'bit.bxor(math.floor(n), count)', 'bit.rshift(count * 8, 2)', 'bit.tobit(count)', 'bit.bnot(count)'})
end

function S.words(g)
   local name = g:let('num', 'n', '0')
   g:line("for w in (%s):gmatch '%%a+' do %s = %s + #w end", g:str(), name, name)
end

function S.variable(g)
   local name = g:name 'va'
   g:line('local function %s(...)', name)
   g:line '   local a, b = ...'
   g:line '   local list = {...}'
   g:line(g:one {"   return select('#', ...), b or a, #list", '   return (select(-1, ...)), list[2] or 1, a',
      '   return unpack(list, 1, 3)'})
   g:line 'end'
   local a, b = g:name 'n', g:name 'n'
   g:line('local %s, %s = %s(%s)', a, b, name, g:one {'n, 2', 'n', '1, nil, 3', 'count, 5, n, 4', ("n, %s(1, 2)"):format(name)})
   g:line('%s, %s = tonumber(%s) or 0, tonumber(%s) or 1', a, b, a, b)
   table.insert(g.vars.num, a)
   table.insert(g.vars.num, b)
end

function S.rest(g)
   if g.fixed then return end
   g:line('log[#log + 1] = %s', g:one {"select('#', ...)", '(...)', 'select(2, ...)', '({...})[1]',
      "(select('#', ...) > 0 and (...) or n)"})
end

function S.leave(g)
   if g.depth > 0 and g:chance(3) then
      g:line('do return %s end', g:one {g:vec(1) .. ', count', 'nil', 'x, x', g:num() .. ', t', g.fixed and 'n' or '...'})
   end
end

function S.multiple(g)
   local a, b = g:one(g.vars.num), g:one(g.vars.num)
   g:line('%s, %s = %s, %s', a, b, b, g:num(1))
end

function S.mathText(g)
   g:let('num', 'n', '%s', g:one {'math.fmod(n, 3)', 'math.ceil(n / 2)', 'math.sqrt(math.abs(n))', '(math.modf(n))', 'bit.band(count, 3)',
      'bit.lshift(1, 2)',
      '2 ^ (n % 3)', 'math.huge', '-math.huge', '0 / 1', 'math.pi', 'n % -3', 'tonumber("0x10")', 'tonumber("4") + n', '("10" + n)'})
end

Gen.family('flow', S, {branch = true, loop = true, whileLoop = true, repeatLoop = true, gotoLoop = true, continueLoop = true, over = true})
