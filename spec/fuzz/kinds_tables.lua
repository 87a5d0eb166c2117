-- Statements: tables, records, sorting, raw access (generator -> lines).

local Gen = require 'fuzz.generate'
local S = {}

function S.keep(g) g:line('t.kept = %s', g:one {'nil', g:vec(), 'x', 'last'}) end
function S.tableCount(g) g:line 't.n = (t.n or 0) + 1' end
function S.push(g) g:line('t[#t + 1] = %s', g:num(1)) end
function S.pop(g) g:line(g:one {'table.remove(t)', 'table.remove(t, 1)', 't[#t] = nil'}) end
function S.insert(g) g:line('table.insert(t, %s%s)', g:one {'', '1, '}, g:num(1)) end
function S.log(g) g:line('log[#log + 1] = %s', g:one {g:num(1), g:str(1), g:vec(1), 'flag', '{n, count}', 't'}) end

function S.record(g)
   local name = g:name 'r'
   g:line('local %s = {v = %s, k = %s, s = %s}', name, g:vec(1), g:num(1), g:str(1))
   g:line('%s.v:add(%s.k)', name, name)
   if g:chance(2) then g:line('t.record = %s', name) end
   table.insert(g.vars.vec, name .. '.v')
   table.insert(g.vars.num, name .. '.k')
end

function S.nested(g)
   local name = g:name 'r'
   g:line('local %s = {list = {%s, %s}, in_ = {v = %s, {%s}}}', name, g:num(1), g:num(1), g:vec(1), g:num(1))
   g:line('%s.in_.v, %s.list[%s] = %s, %s', name, name, g:one {'1', '3', '#' .. name .. '.list + 1', "'k'"}, g:vec(1), g:num(1))
   if g:chance(3) then g:line('%s.self = %s', name, name) end
   if g:chance(2) then g:line('t.nested = %s', name) end
   table.insert(g.vars.vec, name .. '.in_.v')
   table.insert(g.vars.num, '#' .. name .. '.list')
   g.vars.num[#g.vars.num] = name .. '.list[1]'
end

function S.earlier(g) g:line('if t.record then t.record.k = %s end', g:num(1)) end
function S.earlierTensor(g) g:line('if t.record and t.record.v:size(1) == x:size(1) then t.record.v:add(%s) end', g:vec(1)) end
function S.deep(g) g:line('cfg.inner.deep.v = %s', g:one {'cfg.inner.deep.v + 1', g:num(1)}) end
function S.replace(g) g:line('cfg.inner.deep = {v = %s}', g:one {'cfg.inner.deep.v', g:num(1)}) end
function S.dynamicKey(g) g:line("t['k' .. %s] = %s", g:one {'count % 3', '#cfg.list', 'tostring(flag)', 'math.floor(n)'}, g:num(1)) end
function S.objectKey(g) g:line('log[%s] = %s', g:one {'cfg', 'helper', 'x', 'flag'}, g:num(1)) end

function S.sort(g)
   local name = g:name 'q'
   g:line('local %s = {%s, 3, %s, 2}', name, g:one(g.vars.num), g:one(g.vars.num))
   g:line('table.sort(%s%s)', name, g:one {'', ', function(a, b) return a > b end'})
   g:line('log[#log + 1] = %s[1]', name)
end

function S.list(g)
   local name = g:name 'q'
   g:line('local %s = {}', name)
   g:line('for i = 1, %d do %s[i] = %s * i end', g:pick(3), name, g:vec(1))
   g:line('%s[1]:add(%s[#%s])', name, name, name)
   table.insert(g.vars.vec, name .. '[1]')
end

function S.raw(g)
   g:line(g:one {'rawset(t, "raw", n)', 'log[#log + 1] = rawget(cfg, "extra")', 'log[#log + 1] = rawequal(t, cfg)',
      'log[#log + 1] = rawequal(x, y)',
      'log[#log + 1] = next({}) == nil', 'log[#log + 1] = table.maxn(cfg.list)', 'log[#log + 1] = x == last', 't.same = x == y'})
end

function S.unpacked(g) g:let('num', 'n', '(select(2, unpack {%s, %s}))', g:num(1), g:num(1)) end
function S.swap(g) g:line 'if #t > 1 then t[1], t[2] = t[2], t[1] end' end
function S.clear(g) g:line('for i = #%s, 1, -1 do %s[i] = nil end', g:one {'log', 'log'}, 'log') end
function S.global(g) g:line(g:one {'lib.global = (lib.global or 0) + 1', 'fuzzGlobal = n', 'fuzzGlobal = (fuzzGlobal or 0) + 1',
   'log[#log + 1] = fuzzGlobal'}) end

Gen.family('tables', S)
