-- Tester: runs tests and counts their assertions, as programs and rocks of Torch7 use it.
-- tests -> passes, failures, errors, warnings -> report on the terminal.
local C = require 'relume.core'
local torch = C.torch
local Tester = torch.class('torch.Tester')

local own = debug.getinfo(1, 'S').source
local HOOKS = {_setUp = true, _tearDown = true}
local WIDTH = 72

function Tester:__init()
   self.tests, self.names, self.hooks = {}, {}, {}
   self.disabledTests = {}
   self.errors, self.warnings = {}, {}
   self.countasserts = 0
   self._warningCount = {}
   self._currentTestName = ''
   self._assertTensorEqIgnoresDims = true -- {{1}} equals {1} for assertTensorEq, with a warning
end

--- Stops at the first test that fails.
function Tester:setEarlyAbort(on) self.earlyAbort = on end
--- Lets a Lua error inside a test through instead of counting it.
function Tester:setRethrowErrors(on) self.rethrow = on end
--- Prints which tests pass and fail, without the messages.
function Tester:setSummaryOnly(on) self.summaryOnly = on end

-- What becomes of an assertion -------------------------------------------------------------------------------------------------------

-- Lines of the program (not of this file) that led to an assertion.
function Tester:_addDebugInfo(message)
   local lines, level, entered = {tostring(message or '')}, 2, false
   while true do
      local info = debug.getinfo(level, 'Sln')
      if not info then break end
      if info.source == own then
         if entered then break end
      elseif info.currentline > 0 then
         entered = true
         lines[#lines + 1] = ('   %s:%d%s'):format(info.short_src, info.currentline, info.name and ': in ' .. info.name or '')
      end
      level = level + 1
   end
   return table.concat(lines, '\n')
end

--- A passed assertion.
function Tester:_success()
   self.countasserts = self.countasserts + 1
   return true
end

--- A failed one; the test goes on.
function Tester:_failure(message)
   self.countasserts = self.countasserts + 1
   self.errors[#self.errors + 1] = {test = self._currentTestName, message = self:_addDebugInfo(message)}
   self.failed = true
   return false, message
end

--- A remark of the report, at most three from one test.
function Tester:_warning(message)
   local name = self._currentTestName
   local n = (self._warningCount[name] or 0) + 1
   self._warningCount[name] = n
   if n <= 3 then self.warnings[#self.warnings + 1] = {test = name, message = self:_addDebugInfo(message)} end
end

function Tester:_assert_sub(condition, message)
   if condition then return self:_success() end
   return self:_failure(message)
end
Tester.assert_sub = Tester._assert_sub

local function joined(message, detail)
   if message == nil or message == '' then return detail end
   return tostring(message) .. '\n' .. detail
end

-- The optional arguments (tolerance, message), in either order.
local function options(default, ...)
   local n = select('#', ...)
   local a, b = ...
   if n > 2 then error('[Tester] Unexpected arguments; got ' .. n .. ' after the values, need at most tolerance and message', 3) end
   if type(a) == 'string' or type(b) == 'number' then a, b = b, a end
   if a ~= nil and type(a) ~= 'number' then a, b = nil, a end
   return a or default, b
end

local function messageOnly(...)
   if select('#', ...) > 1 then error('[Tester] Unexpected arguments; got ' .. select('#', ...) .. ', need at most a message', 3) end
   return (...)
end

-- Assertions on conditions and numbers -------------------------------------------------------------------------------------------------

--- The condition must hold.
function Tester:assert(condition, ...)
   local message = messageOnly(...)
   if condition ~= nil and type(condition) ~= 'boolean' then
      self:_warning(':assert should only be used for boolean conditions, got ' .. torch.type(condition) .. '; to compare values use :eq')
   end
   return self:_assert_sub(condition, joined(message, 'BOOL violation: condition=' .. tostring(condition)))
end

local function describe(v)
   local s = tostring(v)
   return #s > 200 and s:sub(1, 200) .. '...' or s
end

local function compare(name, sign, holds)
   Tester['assert' .. name] = function(self, a, b, ...)
      local message = messageOnly(...)
      return self:_assert_sub(holds(a, b), joined(message, ('%s violation: %s %s %s does not hold'):format(name:upper(), describe(a), sign, describe(b))))
   end
end
compare('lt', '<', function(a, b) return a < b end)
compare('gt', '>', function(a, b) return a > b end)
compare('le', '<=', function(a, b) return a <= b end)
compare('ge', '>=', function(a, b) return a >= b end)
compare('eq', '==', function(a, b) return a == b end)

--- a ~= b by Lua's rules.
function Tester:assertne(a, b, ...)
   local message = messageOnly(...)
   local ta = type(a)
   if ta == type(b) and (ta == 'table' or ta == 'userdata') then
      self:_warning(':assertne should only be used to compare basic lua objects, got two of type ' .. ta .. '; to compare contents use :ne')
   end
   return self:_assert_sub(a ~= b, joined(message, ('NE violation: both are %s'):format(describe(a))))
end

--- |a - b| <= tolerance (1e-16).
function Tester:assertalmosteq(a, b, ...)
   local tolerance, message = options(1e-16, ...)
   local d = math.abs(a - b)
   return self:_assert_sub(d <= tolerance, joined(message, ('ALMOST_EQ violation: %s and %s, difference %s, tolerance %s'):format(a, b, d, tolerance)))
end

-- Equality of values -----------------------------------------------------------------------------------------------------------------

-- Largest difference of two tensors of one type and number of elements; equal infinities differ by 0.
local function distance(a, b)
   if a:nElement() == 0 then return 0 end
   a, b = a:contiguous():view(-1):double(), b:contiguous():view(-1):double()
   local d = (a - b):abs()
   d[a:eq(b)] = 0
   return d:max()
end

local function sameTensors(a, b, tolerance, anyShape)
   if a:type() ~= b:type() then return false, 'types ' .. a:type() .. ' and ' .. b:type() end
   if not a:isSameSizeAs(b) and not (anyShape and a:nElement() == b:nElement()) then
      return false, 'sizes ' .. table.concat(a:size():totable(), 'x') .. ' and ' .. table.concat(b:size():totable(), 'x')
   end
   local d = distance(a, b)
   return d <= tolerance, ('max diff=%s, tolerance=%s'):format(d, tolerance)
end

local function sameStorages(a, b, tolerance)
   if torch.type(a) ~= torch.type(b) then return false, 'types ' .. torch.type(a) .. ' and ' .. torch.type(b) end
   if a:size() ~= b:size() then return false, 'sizes ' .. a:size() .. ' and ' .. b:size() end
   for i = 1, a:size() do
      local close = a[i] == b[i] or math.abs(a[i] - b[i]) <= tolerance
      if not close then return false, ('element %d: %s and %s'):format(i, a[i], b[i]) end
   end
   return true, 'equal storages'
end

local same

local function sameTables(a, b, tolerance)
   for k, v in pairs(a) do
      local ok, why = same(v, b[k], tolerance)
      if not ok then return false, 'key ' .. tostring(k) .. ': ' .. tostring(why) end
   end
   for k in pairs(b) do if a[k] == nil then return false, 'key ' .. tostring(k) .. ' missing' end end
   return true, 'equal tables'
end

-- Equality of any two values -> boolean, reason.
function same(a, b, tolerance)
   if torch.isTensor(a) and torch.isTensor(b) then return sameTensors(a, b, tolerance) end
   if torch.isStorage(a) and torch.isStorage(b) then return sameStorages(a, b, tolerance) end
   if type(a) ~= type(b) or torch.type(a) ~= torch.type(b) then return false, 'types ' .. torch.type(a) .. ' and ' .. torch.type(b) end
   if a == b then return true, 'equal values' end
   if type(a) == 'number' then return math.abs(a - b) <= tolerance, ('%s and %s, tolerance %s'):format(a, b, tolerance) end
   if type(a) == 'table' then return sameTables(a, b, tolerance) end
   return false, describe(a) .. ' and ' .. describe(b)
end

function Tester:_eqOrNeq(a, b, negate, ...)
   local tolerance, message = options(0, ...)
   local ok, why = same(a, b, tolerance)
   if negate then ok = not ok end
   return self:_assert_sub(ok, joined(message, (negate and 'NE' or 'EQ') .. ' violation: ' .. tostring(why)))
end

function Tester:_assertTensorEqOrNeq(a, b, negate, ...)
   local tolerance, message = options(1e-16, ...)
   if not torch.isTensor(a) then error('[Tester] First argument should be a Tensor; got ' .. torch.type(a), 3) end
   if not torch.isTensor(b) then error('[Tester] Second argument should be a Tensor; got ' .. torch.type(b), 3) end
   local ok, why = sameTensors(a, b, tolerance, self._assertTensorEqIgnoresDims)
   if ok and not negate and not a:isSameSizeAs(b) then
      self:_warning('assertTensorEq: tensors with the same content but different dimensions; exact dimensions will be needed with :eq')
   end
   if negate then ok = not ok end
   return self:_assert_sub(ok, joined(message, (negate and 'TensorNE' or 'TensorEQ') .. ' violation: ' .. tostring(why)))
end

function Tester:_assertTableEqOrNeq(a, b, negate, ...)
   if type(a) ~= 'table' then error('[Tester] First argument should be a table; got ' .. torch.type(a), 3) end
   if type(b) ~= 'table' then error('[Tester] Second argument should be a table; got ' .. torch.type(b), 3) end
   return self:_eqOrNeq(a, b, negate, ...)
end

--- Equal values of any kind: tester:eq(got, want [, tolerance] [, message]).
function Tester:eq(a, b, ...) return self:_eqOrNeq(a, b, false, ...) end
function Tester:ne(a, b, ...) return self:_eqOrNeq(a, b, true, ...) end
Tester.assertGeneralEq, Tester.assertGeneralNe = Tester.eq, Tester.ne
function Tester:assertTensorEq(a, b, ...) return self:_assertTensorEqOrNeq(a, b, false, ...) end
function Tester:assertTensorNe(a, b, ...) return self:_assertTensorEqOrNeq(a, b, true, ...) end
function Tester:assertTableEq(a, b, ...) return self:_assertTableEqOrNeq(a, b, false, ...) end
function Tester:assertTableNe(a, b, ...) return self:_assertTableEqOrNeq(a, b, true, ...) end

-- Errors ------------------------------------------------------------------------------------------------------------------------------

--- The function must raise.
function Tester:assertError(f, message)
   return self:_assert_sub(not pcall(f), joined(message, 'ERROR violation: no error was raised'))
end

--- The function must not raise.
function Tester:assertNoError(f, message)
   local ok, err = pcall(f)
   return self:_assert_sub(ok, joined(message, 'NO ERROR violation: err=' .. tostring(err)))
end

--- The error must be exactly this message.
function Tester:assertErrorMsg(f, want, message)
   local ok, err = pcall(f)
   return self:_assert_sub(not ok and err == want, joined(message, 'ERROR MESSAGE violation: err=' .. tostring(err)))
end

--- The error must match the pattern.
function Tester:assertErrorPattern(f, pattern, message)
   local ok, err = pcall(f)
   return self:_assert_sub(not ok and tostring(err):find(pattern) ~= nil, joined(message, 'ERROR PATTERN violation: err=' .. tostring(err)))
end

--- check(error) must be true.
function Tester:assertErrorObj(f, check, message)
   local ok, err = pcall(f)
   return self:_assert_sub(not ok and check(err), joined(message, 'ERROR OBJECT violation: err=' .. tostring(err)))
end

-- Running --------------------------------------------------------------------------------------------------------------------------

local function addOne(self, f, name)
   if HOOKS[name] then
      if self.hooks[name] then error('[add] Only one ' .. name .. ' is allowed; got a second', 3) end
      self.hooks[name] = f
      return
   end
   if self.tests[name] then error('[add] Test ' .. tostring(name) .. ' is already defined.', 3) end
   self.tests[name] = f
   self.names[#self.names + 1] = name
end

local function addTable(self, tests)
   local names = {}
   if rawget(tests, '__isTestSuite') then tests = tests.__tests
   else self:_warning('please use TestSuite rather than plain lua table for tests') end
   for k, v in pairs(tests) do
      if type(v) == 'table' then error('[add] Nested sets of tests; got a table under ' .. tostring(k) .. ', need functions', 3) end
      if type(v) == 'function' then names[#names + 1] = k end
   end
   table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
   for _, k in ipairs(names) do addOne(self, tests[k], k) end
end

--- Adds a function, a table of functions, or a suite. `_setUp` and `_tearDown` run around every test and get its name.
function Tester:add(f, name)
   if type(f) == 'table' then
      if name ~= nil then error('[add] name; got ' .. tostring(name) .. ' for a table of tests, need none', 2) end
      addTable(self, f)
   elseif type(f) == 'function' then
      addOne(self, f, name or 'unknown')
   else
      error('[add] test; got ' .. type(f) .. ', need function or table', 2)
   end
   return self
end

--- Leaves tests out of the next runs: a name or a list of names.
function Tester:disable(names)
   for _, n in ipairs(type(names) == 'string' and {names} or names) do
      if not self.tests[n] then error('[disable] test; got ' .. tostring(n) .. ', need one that was added', 2) end
      self.disabledTests[n] = true
   end
   return self
end

--- Names of the tests that match: all, or those of a name or list of names; a name that is no test's is a pattern.
function Tester:_getTests(names)
   if names == nil then return self.names end
   local chosen, taken = {}, {}
   for _, pattern in ipairs(type(names) == 'string' and {names} or names) do
      local exact = self.tests[pattern] ~= nil
      for _, n in ipairs(self.names) do
         if not taken[n] and (n == pattern or not exact and tostring(n):match(pattern)) then
            taken[n], chosen[#chosen + 1] = true, n
         end
      end
   end
   return chosen
end

--- Calls f(...); an error is counted, or raised again when asked.
function Tester:_pcall(f, ...)
   if self.rethrow then return true, f(...) end
   local arguments, n = {...}, select('#', ...)
   local ok, err = xpcall(function() return f(unpack(arguments, 1, n)) end, debug.traceback)
   if not ok then
      self.errors[#self.errors + 1] = {test = self._currentTestName, message = 'Function call failed\n' .. tostring(err), raised = true}
      self.raised = true
   end
   return ok, err
end

local function plural(n, word) return n .. ' ' .. word .. (n == 1 and '' or 's') end

local function runOne(self, name)
   self._currentTestName, self.failed, self.raised = name, false, false
   if self.hooks._setUp then self:_pcall(self.hooks._setUp, name) end
   if not self.raised then self:_pcall(self.tests[name], self) end
   if self.hooks._tearDown then self:_pcall(self.hooks._tearDown, name) end
   self._currentTestName = ''
   return self.raised and 'ERROR' or self.failed and 'FAIL' or 'PASS'
end

function Tester:_run(names)
   local count = {PASS = 0, FAIL = 0, ERROR = 0, SKIP = 0}
   self._count = count -- a field, because classes that inherit call _run without its result
   for i, name in ipairs(names) do
      local head = ('%d/%d %s '):format(i, #names, tostring(name))
      io.write(head .. ('.'):rep(math.max(0, WIDTH - #head)) .. ' ')
      io.flush()
      local state = self.disabledTests[name] and 'SKIP' or runOne(self, name)
      count[state] = count[state] + 1
      io.write('[' .. state .. ']\n')
      if self.earlyAbort and (state == 'FAIL' or state == 'ERROR') then
         io.write('Aborting on first error, not all tests have been executed\n')
         break
      end
   end
end

local function printAll(list, kind)
   local rule = ('-'):rep(80) .. '\n'
   for _, e in ipairs(list) do io.write(rule .. kind .. tostring(e.test) .. '\n' .. e.message .. '\n') end
   if #list > 0 then io.write(rule) end
end

function Tester:_report(names)
   local failures, raised = 0, 0
   for _, e in ipairs(self.errors) do
      if e.raised then raised = raised + 1 else failures = failures + 1 end
   end
   io.write(('Completed %s in %s with %s and %s'):format(plural(self.countasserts, 'assert'), plural(#names, 'test'), plural(failures, 'failure'),
      plural(raised, 'error')))
   if self._count.SKIP > 0 then io.write(' and ' .. self._count.SKIP .. ' disabled') end
   if #self.warnings > 0 then io.write(' and ' .. plural(#self.warnings, 'warning')) end
   io.write('\n')
   if not self.summaryOnly then
      printAll(self.warnings, 'WARNING ')
      printAll(self.errors, '')
   end
end

--- Runs all tests, or those that match; prints a report and raises an error when one failed.
function Tester:run(patterns)
   local names = self:_getTests(patterns)
   self.countasserts, self.errors = 0, {}
   io.write('Running ' .. plural(#names, 'test') .. '\n')
   self:_run(names)
   self:_report(names)
   self.warnings, self._warningCount = {}, {}
   if #self.errors > 0 then error('An error was found while running tests!', 0) end
end

return Tester
