-- Statements: pcall, xpcall, error with any value, assert, run-time errors (generator -> lines).

local Gen = require 'fuzz.generate'
local S = {}

local function raise(g)
   return g:one {"error 'no'", "error('no', 0)", "error('no', 2)", 'error {code = n}', 'error()', 'local z = nil + 1',
      'local z = (nil).field', 'count = count + 1',
      'x:narrow(1, 1, 99)', 'torch.add(x, torch.ones(3))', "assert(n > 1, 'small')", 'assert(false)', 'local z = {} < {}',
         "local z = 'a' + 1", 'undefinedFunction()',
      'local z = #nil', 'x:noSuchMethod()', 'return x, n', "error(('at %d'):format(math.floor(n)))", 'x:view(7, 7)',
         'local z = torch.ones(2) * torch.ones(3, 3)'}
end

function S.caught(g)
   local ok, e = g:name 'ok', g:name 'e'
   g:line('local %s, %s = pcall(function()', ok, e)
   g:block(function()
      local fixed = g.fixed
      g.fixed = true
      if g:chance(2) then g:line('%s:add(1)', g:anyVec()) end
      if g:chance(3) then g:statements(1) end
      g:line(raise(g))
      g.fixed = fixed
   end)
   g:line 'end)'
   g:line('log[#log + 1] = %s', g:one {ok, ('%s or type(%s)'):format(ok, e), ('type(%s) == "string" and %s or %s'):format(e, e, ok)})
end

function S.handled(g)
   g:line('log[#log + 1] = select(%d, xpcall(function() count = count + 1 %s end, function(m) return type(m) end))', g:pick(2),
      g:one {"error 'x'", 'error {}', 'local z = nil .. 1', 'x:add(1)'})
end

function S.nested(g)
   g:line('log[#log + 1] = pcall(function()')
   g:line("   local ok, m = pcall(error, {k = %s})", g:one(g.vars.num))
   g:line("   error(m, 0)")
   g:line('end)')
end

function S.direct(g) g:line('log[#log + 1] = select(%d, pcall(%s))', g:pick(2), g:one {"error, 'e', 0", 'helper, x, 1', 'tostring, n',
   'torch.add, x, 1', 'torch.add, x', 'lib.fails, n', 'object, 2'}) end
function S.rethrow(g) g:line("local ok%d, m%d = pcall(lib.fails, n) if not ok%d and type(m%d) ~= 'string' then error(m%d, 0) end",
   g.names, g.names, g.names, g.names, g.names) end
function S.check(g) g:line("assert(type(%s) == 'number', 'not a number')", g:num(1)) end
function S.uncaught(g) if g:chance(6) then g:line('if %s then %s end', g:test(), g:one {"error 'out'", "error({code = n})",
   'local z = x + {}', "error('out', 0)", 'x:resize(-3)'}) end end
function S.gradSafe(g) g:line('pcall(torch.noGrad, function() count = count + 1 %s end)', g:one {"error 'x'", 'x:mul(1)', ''}) end

Gen.family('errors', S, {caught = true})
