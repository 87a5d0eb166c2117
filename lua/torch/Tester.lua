-- Tester: runs tests and counts their assertions, as programs and rocks of Torch7 use it.
-- tests -> failures -> report on the terminal.
local C = require 'relume.core'
local torch = C.torch
local Tester = torch.class('torch.Tester')

function Tester:__init()
   self.tests, self.names, self.disabled = {}, {}, {}
   self.failures, self.errors = {}, {}
   self.countasserts = 0
   self.rethrow, self.early, self.summaryOnly = false, false, false
end

function Tester:setEarlyAbort(on) self.early = on end
function Tester:setRethrowErrors(on) self.rethrow = on end
function Tester:setSummaryOnly(on) self.summaryOnly = on end

-- Assertions -----------------------------------------------------------------------------------------------------------------------

--- Counts an assertion; a false condition is a failure of the test that runs.
function Tester:assert_sub(condition, message)
   self.countasserts = self.countasserts + 1
   if condition then return true end
   local where = ''
   for level = 3, 8 do
      local info = debug.getinfo(level, 'Sl')
      if info and info.currentline > 0 and not info.source:find('Tester.lua', 1, true) then
         where = info.short_src .. ':' .. info.currentline .. ': '
         break
      end
   end
   self.failures[#self.failures + 1] = {test = self.current or '?', message = where .. tostring(message or 'assertion failed')}
   if self.early then error('early abort: ' .. tostring(message), 0) end
   return false
end
Tester._assert_sub = Tester.assert_sub

function Tester:assert(condition, message)
   return self:assert_sub(condition, 'ASSERT: ' .. tostring(message or ''))
end

local function describe(v)
   local s = tostring(v)
   return #s > 200 and s:sub(1, 200) .. '...' or s
end

local function compare(name, holds)
   Tester['assert' .. name] = function(self, a, b, message)
      return self:assert_sub(holds(a, b), ('%s %s: %s, %s'):format(name:upper(), tostring(message or ''), describe(a), describe(b)))
   end
end
compare('lt', function(a, b) return a < b end)
compare('gt', function(a, b) return a > b end)
compare('le', function(a, b) return a <= b end)
compare('ge', function(a, b) return a >= b end)

function Tester:assertalmosteq(a, b, tolerance, message)
   return self:assert_sub(math.abs(a - b) <= (tolerance or 1e-16), ('ALMOST_EQ %s: %s, %s'):format(tostring(message or ''), tostring(a), tostring(b)))
end

local function tensorDistance(a, b)
   if a:dim() ~= b:dim() then return nil, 'dimensions ' .. a:dim() .. ' and ' .. b:dim() end
   if not a:isSameSizeAs(b) then return nil, 'different sizes' end
   if a:nElement() == 0 then return 0 end
   return (a:double() - b:double()):abs():max()
end

-- Equality of any two values -> boolean, reason.
local function same(a, b, tolerance)
   local ta, tb = torch.type(a), torch.type(b)
   if ta ~= tb then return false, 'types ' .. ta .. ' and ' .. tb end
   if torch.isTensor(a) then
      local d, why = tensorDistance(a, b)
      if not d then return false, why end
      return d <= tolerance, 'largest difference ' .. tostring(d)
   end
   if torch.isStorage(a) then return torch.isequal(a, b), 'different storages' end
   if type(a) == 'number' then return a == b or math.abs(a - b) <= tolerance, tostring(a) .. ' and ' .. tostring(b) end
   if type(a) ~= 'table' then return a == b, tostring(a) .. ' and ' .. tostring(b) end
   for k, v in pairs(a) do
      local ok, why = same(v, b[k], tolerance)
      if not ok then return false, 'key ' .. tostring(k) .. ': ' .. tostring(why) end
   end
   for k in pairs(b) do if a[k] == nil then return false, 'key ' .. tostring(k) end end
   return true
end

local function arguments(tolerance, message)
   if type(tolerance) == 'string' then tolerance, message = message, tolerance end
   return tolerance or 0, message
end

--- Equal values of any kind: tester:eq(got, want [, tolerance] [, message]).
function Tester:eq(a, b, tolerance, message)
   tolerance, message = arguments(tolerance, message)
   local ok, why = same(a, b, tolerance)
   return self:assert_sub(ok, ('EQ %s: %s'):format(tostring(message or ''), tostring(why)))
end

function Tester:ne(a, b, tolerance, message)
   tolerance, message = arguments(tolerance, message)
   return self:assert_sub(not same(a, b, tolerance), ('NE %s: values are equal'):format(tostring(message or '')))
end

function Tester:asserteq(a, b, message) return self:eq(a, b, 0, message) end
function Tester:assertne(a, b, message) return self:ne(a, b, 0, message) end
Tester.assertGeneralEq, Tester.assertGeneralNe = Tester.eq, Tester.ne
Tester.assertTensorEq, Tester.assertTensorNe, Tester.assertTableEq, Tester.assertTableNe = Tester.eq, Tester.ne, Tester.eq, Tester.ne

--- The function must raise.
function Tester:assertError(f, message)
   return self:assert_sub(not pcall(f), 'ERROR ' .. tostring(message or '') .. ': no error')
end

function Tester:assertNoError(f, message)
   local ok, err = pcall(f)
   return self:assert_sub(ok, 'NO_ERROR ' .. tostring(message or '') .. ': ' .. tostring(err))
end

function Tester:assertErrorMsg(f, want, message)
   local ok, err = pcall(f)
   return self:assert_sub(not ok and err == want, 'ERROR_MSG ' .. tostring(message or '') .. ': ' .. tostring(err))
end

function Tester:assertErrorPattern(f, pattern, message)
   local ok, err = pcall(f)
   return self:assert_sub(not ok and tostring(err):find(pattern) ~= nil, 'ERROR_PATTERN ' .. tostring(message or '') .. ': ' .. tostring(err))
end

function Tester:assertErrorObj(f, check, message)
   local ok, err = pcall(f)
   return self:assert_sub(not ok and check(err), 'ERROR_OBJ ' .. tostring(message or '') .. ': ' .. tostring(err))
end

-- Running --------------------------------------------------------------------------------------------------------------------------

--- Adds a function, a table of functions, or a suite.
function Tester:add(f, name)
   if type(f) == 'table' then
      local tests = rawget(f, '__tests') or f
      local names = {}
      for k, v in pairs(tests) do
         if type(v) == 'function' or type(v) == 'table' then names[#names + 1] = k end
      end
      table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
      for _, k in ipairs(names) do self:add(tests[k], (name and name .. '_' or '') .. tostring(k)) end
      return self
   end
   if type(f) ~= 'function' then error('[add] test; got ' .. type(f) .. ', need function or table', 2) end
   name = name or 'unknown'
   self.tests[name] = f
   self.names[#self.names + 1] = name
   return self
end

--- Leaves tests out: a name or a table of names.
function Tester:disable(names)
   if type(names) == 'string' then names = {names} end
   for _, n in ipairs(names) do self.disabled[n] = true end
   return self
end

local function chosen(self, names)
   if names == nil then return self.names end
   if type(names) == 'string' then names = {names} end
   local out = {}
   for _, pattern in ipairs(names) do
      for _, n in ipairs(self.names) do
         if n == pattern or n:find('^' .. pattern .. '$') then out[#out + 1] = n end
      end
   end
   return out
end

--- Runs all tests, or those named; prints a report and ends the program with an error when one failed.
function Tester:run(names)
   local list = chosen(self, names)
   print('Running ' .. #list .. ' test' .. (#list == 1 and '' or 's'))
   for _, name in ipairs(list) do
      if not self.disabled[name] then
         self.current = name
         local ok, err = xpcall(self.tests[name], debug.traceback)
         if not ok then
            self.errors[#self.errors + 1] = {test = name, message = err}
            if self.rethrow then error(err, 0) end
         end
      end
   end
   return self:_report(#list)
end

function Tester:_report(count)
   print(('Completed %d asserts in %d tests with %d failures and %d errors'):format(self.countasserts, count, #self.failures, #self.errors))
   if not self.summaryOnly then
      for _, f in ipairs(self.failures) do print('--------\n' .. f.test .. '\n' .. f.message) end
      for _, f in ipairs(self.errors) do print('--------\n' .. f.test .. '\n' .. f.message) end
   end
   if #self.failures + #self.errors > 0 then error('An error was found while running tests!', 0) end
end

return Tester
