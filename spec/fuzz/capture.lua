-- Fuzzer of capture: random Lua closures, run eagerly and compiled; results, changes of arguments and of captured state must agree.
-- From the root of the built tree: luajit spec/fuzz/capture.lua [--count n] [--seed s] [--plans]; --plans runs generated code, not the
-- interpreter of graphs. As a module: require 'fuzz.capture' (count, seed, plans) -> nil or the text of the first difference.

local main = arg and arg[0] and arg[0]:find 'fuzz/capture%.lua$'
if main then dofile((arg[0]:match '^(.*)spec/' or '') .. 'examples/paths.lua') end
require 'torch'
local compile = require 'relume.jit.compile'

-- Random source text -----------------------------------------------------------------------------------------------------------

local Gen = {}
Gen.__index = Gen

-- Lehmer's generator, so that a seed gives the same program everywhere.
function Gen:pick(n)
   self.state = self.state * 48271 % 2147483647
   return self.state % n + 1
end

function Gen:one(list) return list[self:pick(#list)] end

function Gen:line(...) self.out[#self.out + 1] = ('   '):rep(self.indent) .. string.format(...) end

function Gen:name(prefix)
   self.names = self.names + 1
   return prefix .. self.names
end

-- Runs f in a block of its own: names declared inside are gone behind it.
function Gen:block(f)
   local tensors, numbers, functions = {unpack(self.tensors)}, {unpack(self.numbers)}, {unpack(self.functions)}
   self.indent, self.depth = self.indent + 1, self.depth + 1
   f()
   self.indent, self.depth = self.indent - 1, self.depth - 1
   self.tensors, self.numbers, self.functions = tensors, numbers, functions
end

-- A tensor expression of the common size.
function Gen:tensor(depth)
   local function sub() return self:tensor((depth or 0) + 1) end
   local k = (depth or 0) > 2 and 1 or self:pick(12)
   if k <= 4 then return self:one(self.tensors)
   elseif k == 5 then return ('(%s + %s)'):format(sub(), sub())
   elseif k == 6 then return ('torch.tanh(%s)'):format(sub())
   elseif k == 7 then return ('torch.cmul(%s, %s)'):format(sub(), sub())
   elseif k == 8 then return ('(%s * %s)'):format(sub(), self:number(2))
   elseif k == 9 then return ('%s:clone():add(%s)'):format(sub(), self:number(2))
   elseif k == 10 and #self.functions > 0 then return ('%s(%s)'):format(self:one(self.functions), sub())
   elseif k == 11 then return ('(t.kept or %s)'):format(self:one(self.tensors)) end
   return ('torch.abs(%s)'):format(sub())
end

-- A number expression.
function Gen:number(depth)
   local function sub() return self:number((depth or 0) + 1) end
   local k = (depth or 0) > 2 and self:pick(3) or self:pick(11)
   if k == 1 then return tostring(self:pick(5) - 2)
   elseif k <= 3 then return self:one(self.numbers)
   elseif k == 4 then return ('(%s + %s)'):format(sub(), sub())
   elseif k == 5 then return ('(%s * 0.5)'):format(sub())
   elseif k == 6 then return ('math.min(%s, 3)'):format(sub())
   elseif k == 7 then return ('torch.tanh(%s):sum()'):format(self:one(self.tensors))
   elseif k == 8 then return ('%s:size(1)'):format(self:one(self.tensors))
   elseif k == 9 then return '(t.n or 0)'
   elseif k == 10 then return '#t' end
   return ('math.max(%s, -2)'):format(self:one(self.tensors) .. '[1]')
end

function Gen:test()
   local k = self:pick(9)
   if k == 1 then return ('%s:size(1) > 4'):format(self:one(self.tensors))
   elseif k == 2 then return ('%s:sum() > %s'):format(self:one(self.tensors), self:number(2))
   elseif k == 3 then return ('%s < %s'):format(self:number(1), self:number(1))
   elseif k == 4 then return 't.kept'
   elseif k == 5 then return 'not flag'
   elseif k == 6 then return 'count % 2 == 0'
   elseif k == 7 then return ('%s[%d] > 0'):format(self:one(self.tensors), self:pick(3))
   elseif k == 8 then return 'type(t.n) == "number" and t.n > 2' end
   return ('flag and %s > 1'):format(self:number(1))
end

local S = {}

function S:newTensor()
   local name = self:name 'a'
   self:line('local %s = %s', name, self:tensor())
   self.tensors[#self.tensors + 1] = name
end

function S:newNumber()
   local name = self:name 'n'
   self:line('local %s = %s', name, self:number())
   self.numbers[#self.numbers + 1] = name
end

function S:change() self:line('%s:%s(%s)', self:one(self.tensors), self:one {'add', 'mul', 'fill'}, self:one {self:number(2), '0.5', '-1'}) end
function S:changeBy() self:line('%s:%s(%s)', self:one(self.tensors), self:one {'add', 'cmul', 'copy'}, self:tensor(1)) end
function S:squash() self:line('%s:tanh()', self:one(self.tensors)) end

function S:view()
   local name = self:name 'w'
   self:line('local %s = %s:narrow(1, %d, 2)', name, self:one(self.tensors), self:pick(3))
   self:line('%s:%s(%s)', name, self:one {'add', 'mul', 'fill'}, self:number(2))
end

function S:element() self:line('%s[%d] = %s', self:one(self.tensors), self:pick(4), self:number(1)) end
function S:assign() self:line('%s = %s', self.numbers[self:pick(#self.numbers)], self:number()) end
function S:count() self:line 'count = count + 1' end
function S:upvalue() self:line('last = %s', self:tensor()) end
function S:keep() self:line('t.kept = %s', self:one {'nil', self:tensor()}) end
function S:tableCount() self:line 't.n = (t.n or 0) + 1' end
function S:push() self:line('t[#t + 1] = %s', self:number(1)) end
function S:pop() self:line 'table.remove(t)' end

function S:record()
   self:line('local r%d = {v = %s, k = %s}', self.names + 1, self:tensor(1), self:number(1))
   local name = self:name 'r'
   self:line('%s.v:add(%s.k)', name, name)
   self:line('t.record = %s', name)
   self.tensors[#self.tensors + 1] = name .. '.v'
end

function S:output() self:line("io.write('')") end
function S:text() self:line("local _ = 'v ' .. %s", self:number()) end
function S:show() self:line('local _ = tostring(%s)', self:one(self.tensors)) end
function S:random() self:line('%s:add(torch.rand(%s:size(1)))', self:one(self.tensors), self:one(self.tensors)) end

function S:caught()
   self:line 'local ok = pcall(function()'
   self:block(function()
      self:line('%s:add(1)', self:one(self.tensors))
      self:line(self:one {'error "no"', 'local z = nil + 1', 'count = count + 1'})
   end)
   self:line 'end)'
   self:line 'if ok then count = count + 1 end'
end

function S:branch()
   self:line('if %s then', self:test())
   self:block(function() self:statements(self:pick(3)) end)
   if self:pick(2) == 1 then
      self:line 'else'
      self:block(function() self:statements(self:pick(3)) end)
   end
   self:line 'end'
end

function S:loop()
   local i = self:name 'i'
   self:line('for %s = 1, %d do', i, self:pick(4))
   self:block(function()
      self.numbers[#self.numbers + 1] = i
      self:statements(self:pick(3))
      if self:pick(4) == 1 then self:line('if %s then break end', self:test()) end
   end)
   self:line 'end'
end

function S:whileLoop()
   local i = self:name 'k'
   self:line('local %s = 0', i)
   self:line('while %s < 4 and %s do', i, self:test())
   self:block(function()
      self:line('%s = %s + 1', i, i)
      self:statements(self:pick(3))
   end)
   self:line 'end'
end

function S:over()
   local k, v = self:name 'k', self:name 'v'
   self:line('for %s, %s in %s do', k, v, self:one {'ipairs {t[1], t[2], t[3]}', 'ipairs {1, 2, 3}', 'ipairs {count, 2}'})
   self:block(function()
      self.numbers[#self.numbers + 1] = k
      self.numbers[#self.numbers + 1] = v
      self:statements(self:pick(2))
   end)
   self:line 'end'
end

function S:func()
   local name = self:name 'f'
   self:line('local function %s(a)', name)
   self:block(function()
      self.tensors[#self.tensors + 1] = 'a'
      self:statements(self:pick(2))
      self:line('return %s', self:tensor(1))
   end)
   self:line 'end'
   self.functions[#self.functions + 1] = name
end

function S:leave()
   if self.depth > 0 and self:pick(3) == 1 then self:line('do return %s, count end', self:tensor(1)) end
end

local kinds = {}
for name in pairs(S) do kinds[#kinds + 1] = name end
table.sort(kinds)
local nested = {branch = true, loop = true, whileLoop = true, over = true, func = true, caught = true}

function Gen:statements(n)
   for _ = 1, n do
      local kind = self:one(kinds)
      if not (nested[kind] and self.depth > 2) then S[kind](self) end
   end
end

-- Source of a chunk that returns a closure and a function that returns its captured state.
local function program(seed)
   local g = setmetatable({state = seed % 2147483646 + 1, out = {}, indent = 1, depth = 0, names = 0, tensors = {'x', 'y', 'last'}, numbers = {'n', 'count'},
      functions = {}}, Gen)
   for _ = 1, 5 do g:pick(10) end
   g:line 'local count, last = 0, torch.ones(5)'
   g:line 'local function f(x, y, t, n, flag)'
   g.indent = 2
   g:line 'last = last:size(1) == x:size(1) and last or torch.ones(x:size(1))'
   g:line 't.kept = t.kept and t.kept:size(1) == x:size(1) and t.kept or nil'
   g:statements(2 + g:pick(8))
   g:line('return %s, %s', g:tensor(), g:number())
   g.indent = 1
   g:line 'end'
   g:line 'return f, function() return count, last end'
   return table.concat(g.out, '\n')
end

-- Running ----------------------------------------------------------------------------------------------------------------------

-- Everything that can be seen of values, as a flat list of numbers and texts.
local function flatten(list, depth, ...)
   for i = 1, select('#', ...) do
      local v = select(i, ...)
      if torch.isTensor(v) then
         list[#list + 1] = torch.typename(v)
         for _, x in ipairs(v:totable()) do list[#list + 1] = x end
      elseif type(v) == 'table' and depth < 4 then
         local keys = {}
         for k in pairs(v) do keys[#keys + 1] = k end
         table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
         for _, k in ipairs(keys) do flatten(list, depth + 1, k, v[k]) end
      elseif type(v) == 'number' then list[#list + 1] = v
      else list[#list + 1] = type(v) == 'string' and v or type(v) == 'boolean' and tostring(v) or type(v) end
   end
   return list
end

local function near(a, b)
   if type(a) ~= 'number' or type(b) ~= 'number' then return a == b end
   if a ~= a or b ~= b then return a ~= a and b ~= b end
   return a == b or math.abs(a - b) <= 1e-8 * (1 + math.max(math.abs(a), math.abs(b)))
end

local function runs(source, wrap, seed)
   local f, state = assert(loadstring(source, '=fuzz'))()
   local g, t, out = wrap(f), {1, 2}, {}
   for call, size in ipairs {5, 5, 6, 5, 6} do
      torch.manualSeed(seed + call)
      local x, y = torch.randn(size), torch.randn(size)
      local list = flatten({}, 0, pcall(g, x, y, t, call % 3, call ~= 4))
      out[call] = flatten(list, 0, x, y, t, state())
      out[call][#out[call] + 1] = torch.rand(1)[1] -- the generator was advanced as far
   end
   return out
end

local function interpreter(graph, inputs)
   local n = #inputs
   return function(...)
      local tensors, numbers = {}, {}
      for i = 1, select('#', ...) do
         if i <= n then tensors[i] = (select(i, ...)) else numbers[i - n] = (select(i, ...)) end
      end
      return graph:run(tensors, numbers)
   end
end

--- One closure: nil, or the text of what differs.
local function try(seed, plans)
   local source = program(seed)
   local opts = not plans and {backend = interpreter} or nil
   local want = runs(source, function(f) return f end, seed)
   local ok, got = pcall(runs, source, function(f) return compile.compile(f, opts) end, seed)
   if not ok then return ('seed %d: compiled run fails: %s\n%s'):format(seed, tostring(got), source) end
   for call, list in ipairs(want) do
      for i = 1, math.max(#list, #got[call]) do
         if not near(list[i], got[call][i]) then
            return ('seed %d, call %d, value %d: got %s, need %s\n%s'):format(seed, call, i, tostring(got[call][i]), tostring(list[i]), source)
         end
      end
   end
end

--- Runs count closures from a seed on. Returns nil, or what differs in the first one that does.
local function fuzz(count, seed, plans)
   local warnings = compile.warnings
   compile.warnings = false
   local text
   for i = 0, count - 1 do
      text = try(seed + i, plans)
      if text then break end
      if i % 50 == 49 then collectgarbage() end
   end
   compile.warnings = warnings
   return text
end

if not main then return {fuzz = fuzz, program = program, try = try} end
local opts = {count = '1000', seed = tostring(os.time() % 1000000 * 1000)}
for i, a in ipairs(arg) do
   local name = a:match '^%-%-(%a+)$'
   if name then opts[name] = arg[i + 1] and not arg[i + 1]:find '^%-%-' and arg[i + 1] or true end
end
local count, seed = tonumber(opts.count), tonumber(opts.seed)
print(('capture: %d closures from seed %d'):format(count, seed))
local failed = fuzz(count, seed, opts.plans)
print(failed or 'all agree')
os.exit(failed and 1 or 0)
