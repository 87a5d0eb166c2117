-- Random Lua programs: expressions, blocks and the frame around a closure (seed -> source text); statements come in families, one file each.
--
-- The text is a chunk that returns the closure f(x, y, t, n, flag, ...), a function that returns the captured state, and a function that
-- changes that state between calls. x and y are vectors of one size, t is a table that lives over all calls.

local Gen = {}
Gen.__index = Gen

-- Choices ------------------------------------------------------------------------------------------------------------------------

-- Lehmer's generator, so that a seed gives the same program everywhere.
function Gen:pick(n)
   self.state = self.state * 48271 % 2147483647
   return self.state % n + 1
end

function Gen:one(list) return list[self:pick(#list)] end
function Gen:chance(n) return self:pick(n) == 1 end

-- Text ---------------------------------------------------------------------------------------------------------------------------

--- A line; text alone is taken as it is, with arguments it is a format.
function Gen:line(text, ...)
   if select('#', ...) > 0 then text = text:format(...) end
   self.out[#self.out + 1] = ('   '):rep(self.indent) .. text
end

function Gen:name(prefix)
   self.names = self.names + 1
   return prefix .. self.names
end

--- A new variable of a kind (vec, num, str, fun, tab, mat).
function Gen:declare(kind, prefix)
   local name = self:name(prefix)
   return name, function() table.insert(self.vars[kind], name) end
end

--- local name = expression
function Gen:let(kind, prefix, ...)
   local name, done = self:declare(kind, prefix)
   self:line('local ' .. name .. ' = ' .. string.format(...))
   done()
   return name
end

-- Runs f in a block of its own: names declared inside are gone behind it.
function Gen:block(f)
   local saved = self.vars
   self.vars = {}
   for kind, list in pairs(saved) do self.vars[kind] = {unpack(list)} end
   self.indent, self.depth = self.indent + 1, self.depth + 1
   f()
   self.indent, self.depth = self.indent - 1, self.depth - 1
   self.vars = saved
end

--- A block of n random statements.
function Gen:body(n)
   self:block(function() self:statements(n or self:pick(3)) end)
end

-- Expressions --------------------------------------------------------------------------------------------------------------------

function Gen:anyVec() return self:one(self.vars.vec) end
function Gen:index() return self:pick(4) end

local vec = {
   function(g) return g:anyVec() end,
   function(g) return g:anyVec() end,
   function(g, sub) return ('(%s + %s)'):format(sub(), sub()) end,
   function(g, sub) return ('(%s - %s)'):format(sub(), sub()) end,
   function(g, sub) return ('torch.tanh(%s)'):format(sub()) end,
   function(g, sub) return ('torch.sigmoid(%s)'):format(sub()) end,
   function(g, sub) return ('torch.abs(%s)'):format(sub()) end,
   function(g, sub) return ('torch.cmul(%s, %s)'):format(sub(), sub()) end,
   function(g, sub) return ('torch.cdiv(%s, torch.abs(%s):add(1))'):format(sub(), sub()) end,
   function(g, sub) return ('(%s * %s)'):format(sub(), g:num(2)) end,
   function(g, sub) return ('(%s / 2)'):format(sub()) end,
   function(g, sub) return ('(- %s)'):format(sub()) end,
   function(g, sub) return ('%s:clone():add(%s)'):format(sub(), g:num(2)) end,
   function(g) return ('torch.cumsum(%s, 1)'):format(g:anyVec()) end,
   function(g) return ('torch.sort(%s)'):format(g:anyVec()) end,
   function(g) return ('torch.cmax(%s, %s)'):format(g:anyVec(), g:anyVec()) end,
   function(g) return ('(t.kept or %s)'):format(g:anyVec()) end,
   function(g) return ('(flag and %s or %s)'):format(g:anyVec(), g:anyVec()) end,
   function(g) return ('torch.zeros(%s:size(1))'):format(g:anyVec()) end,
   function(g) return ('torch.range(1, %s:size(1))'):format(g:anyVec()) end,
   function(g) return ('torch.clamp(%s, -1, %s)'):format(g:anyVec(), g:one {'1', '0.5', 'cfg.scale'}) end,
   function(g, sub) return #g.vars.fun > 0 and ('%s(%s)'):format(g:one(g.vars.fun), sub()) or g:anyVec() end,
   function(g, sub) return #g.vars.fun > 0 and ('%s(%s)'):format(g:one(g.vars.fun), sub()) or g:anyVec() end,
   function(g) return #g.vars.mat > 0 and ('%s:sum(1):view(-1)'):format(g:one(g.vars.mat)) or g:anyVec() end,
   function(g) return #g.vars.mat > 0 and ('%s[%d]:clone()'):format(g:one(g.vars.mat), g:pick(3)) or g:anyVec() end,
   function(g, sub) return ('helper(%s, %s)'):format(sub(), g:num(2)) end,
   function(g, sub) return ('(%s * cfg.scale)'):format(sub()) end,
}

--- A tensor expression of the common size.
function Gen:vec(depth)
   depth = depth or 0
   if depth > 2 then return self:anyVec() end
   return self:one(vec)(self, function() return self:vec(depth + 1) end)
end

local num = {
   function(g) return tostring(g:pick(5) - 2) end,
   function(g) return g:one(g.vars.num) end,
   function(g) return g:one(g.vars.num) end,
   function(g, sub) return ('(%s + %s)'):format(sub(), sub()) end,
   function(g, sub) return ('(%s - %s)'):format(sub(), sub()) end,
   function(g, sub) return ('(%s * 0.5)'):format(sub()) end,
   function(g, sub) return ('(- %s)'):format(sub()) end,
   function(g, sub) return ('(%s %% 3)'):format(sub()) end,
   function(g, sub) return ('math.min(%s, 3)'):format(sub()) end,
   function(g, sub) return ('math.max(%s, -2)'):format(sub()) end,
   function(g, sub) return ('math.floor(%s)'):format(sub()) end,
   function(g, sub) return ('math.abs(%s)'):format(sub()) end,
   function(g) return ('torch.tanh(%s):sum()'):format(g:anyVec()) end,
   function(g) return ('%s:size(1)'):format(g:anyVec()) end,
   function(g) return ('%s:nElement()'):format(g:anyVec()) end,
   function(g) return ('%s[%d]'):format(g:anyVec(), g:index()) end,
   function(g) return ('torch.tanh(%s):%s()'):format(g:anyVec(), g:one {'mean', 'max', 'min', 'norm'}) end,
   function() return '(t.n or 0)' end,
   function() return '#t' end,
   function() return 'cfg.scale' end,
   function(g) return '#' .. g:str(2) end,
   function() return "select('#', ...)", true end,
   function(g, sub) return ('(%s or %s)'):format(g:one {'t.n', 'cfg.extra', 'nil', 'false'}, sub()) end,
   function(g, sub) return ('(%s and %s or %s)'):format(g:test(1), sub(), sub()) end,
}

--- A number expression.
function Gen:num(depth)
   depth = depth or 0
   if depth > 2 then return self:one(self.vars.num) end
   local text, variable = self:one(num)(self, function() return self:num(depth + 1) end)
   if variable and self.fixed then return 'n' end -- ... belongs to functions with variable arguments
   return text
end

local str = {
   function(g) return ('%q'):format(g:one {'a', 'key', 'x y', '', '7'}) end,
   function(g) return g:one(g.vars.str) end,
   function(g) return g:one(g.vars.str) end,
   function(g, sub) return ('(%s .. %s)'):format(sub(), sub()) end,
   function(g, sub) return ('(%s .. math.floor(%s))'):format(sub(), g:one(g.vars.num)) end,
   function(g) return ("('%%d-%%s'):format(math.floor(%s), %s)"):format(g:one(g.vars.num), g:one(g.vars.str)) end,
   function(g, sub) return ('%s:sub(%d, %d)'):format(sub(), g:pick(2), g:pick(4)) end,
   function(g, sub) return ('%s:upper()'):format(sub()) end,
   function(g, sub) return ("(%s:gsub('[ae]', 'o'))"):format(sub()) end,
   function(g) return ('tostring(%s)'):format(g:one {'flag', 'count', 't.n', 'nil', 'cfg.scale'}) end,
   function(g) return ('type(%s)'):format(g:one {'x', 't.kept', 't[1]', 'helper', 'n'}) end,
   function(g) return ('torch.type(%s)'):format(g:anyVec()) end,
   function(g) return ("table.concat({%s, 'z', %d}, '+')"):format(g:one(g.vars.str), g:pick(3)) end,
}

--- A string expression.
function Gen:str(depth)
   depth = depth or 0
   if depth > 1 then return '(' .. self:one(self.vars.str) .. ')' end
   local text = self:one(str)(self, function() return self:str(depth + 1) end)
   return text:find '^[%a(]' and text or '(' .. text .. ')'
end

local test = {
   function(g) return ('%s:size(1) > 4'):format(g:anyVec()) end,
   function(g) return ('%s:size(1) == %s:size(1)'):format(g:anyVec(), g:anyVec()) end,
   function(g) return ('%s:sum() > %s'):format(g:anyVec(), g:num(2)) end,
   function(g) return ('%s < %s'):format(g:num(1), g:num(1)) end,
   function(g) return ('%s %s %s'):format(g:num(2), g:one {'==', '~=', '<=', '>=', '>'}, g:num(2)) end,
   function() return 't.kept' end,
   function() return 'not flag' end,
   function() return 'count % 2 == 0' end,
   function(g) return ('%s[%d] > 0'):format(g:anyVec(), g:index()) end,
   function() return 'type(t.n) == "number" and t.n > 2' end,
   function(g) return ('flag and %s > 1'):format(g:num(1)) end,
   function(g) return ('%s == %s'):format(g:str(1), g:str(1)) end,
   function(g) return ('%s < %s'):format(g:str(1), g:str(1)) end,
   function(g) return ('%s == %s'):format(g:anyVec(), g:anyVec()) end,
   function() return 'cfg.on' end,
   function() return 't[1] ~= nil' end,
   function() return 'next(t) == nil' end,
   function(g) return ('not (%s)'):format(g:one {'cfg.on', 'flag', 't.record', 'n > 1'}) end,
}

--- A condition.
function Gen:test(depth)
   if not depth and self:chance(6) then return ('(%s) %s %s'):format(self:test(1), self:one {'and', 'or'}, self:test(1)) end
   return self:one(test)(self)
end

-- Statements ---------------------------------------------------------------------------------------------------------------------

Gen.families = {} -- name -> {kinds = {name -> function(g)}, names, nested}

--- Adds a family: kinds name -> function(g); nested: set of those that hold blocks.
function Gen.family(name, kinds, nested)
   local names = {}
   for kind in pairs(kinds) do names[#names + 1] = kind end
   table.sort(names)
   Gen.families[name] = {kinds = kinds, names = names, nested = nested or {}}
end

function Gen:statements(n)
   for _ = 1, n do
      local family = self.families[self:one(self.theme)]
      local kind = self:one(family.names)
      local over = #self.out > 120 or self.depth > 2
      if not (over and family.nested[kind]) then family.kinds[kind](self) end
   end
end

-- Frame --------------------------------------------------------------------------------------------------------------------------

local order = {'flow', 'tables', 'closures', 'objects', 'errors', 'tensors', 'views', 'types', 'gradients', 'nets', 'matrices', 'outside'}
local always = {flow = true, tensors = true}

local function theme(g)
   local list = {}
   for _, name in ipairs(order) do
      if always[name] or g:chance(name == 'nets' and 6 or 2) then list[#list + 1] = name end
   end
   return list
end

local changes = {
   'cfg.scale = cfg.scale + 1', 'cfg.on = not cfg.on', 'cfg.extra = k', 'cfg.extra = nil', 'helper = other', 'count = count + 10',
      'last = torch.ones(5)',
   'last:mul(2)', 'Class.factor = k', 'object = lib.new(Class, {own = k})', 'object.own = object.own + 1', 'cfg.list = {k, k}',
      'buffer = torch.ones(k)',
   'weight:fill(k)', 'function Class.more(self, v) return v + k end', 'cfg.name = "c" .. k', 'log = {}',
      'setmetatable(cfg, {__index = {extra = k}})',
   'acc = lib.Acc(k)', 'acc.total:add(1)', 'cfg.list[#cfg.list + 1] = k', 'weight = torch.ones(5):requiresGrad(true)',
      'sgd.learningRate = k / 10',
}

local function captured(g)
   g:line 'local lib = ...'
   g:line "local count, last, log, buffer = 0, torch.ones(5), {}, torch.zeros(3)"
   g:line "local cfg = {scale = 2, on = true, list = {1, 2}, name = 'c', inner = {deep = {v = 1}}}"
   g:line 'local function other(a, s) return a - s end'
   g:line 'local function helper(a, s) return a + s end'
   g:line 'local Class = lib.class()'
   g:line 'local object, acc = lib.new(Class, {own = 1}), lib.Acc(2)'
   g:line 'local weight, sgd, net, criterion, params, grads = torch.ones(5), {learningRate = 0.1}'
   if g.uses.nets or g.uses.outside then g:line('net, criterion, params, grads = lib.net(%d)', g:pick(8)) end
end

local function closure(g)
   g:line 'local function f(x, y, t, n, flag, ...)'
   g.indent = 2
   g:line 'last = last:size(1) == x:size(1) and last or torch.ones(x:size(1))'
   g:line 'if weight:size(1) ~= x:size(1) then weight = torch.ones(x:size(1)) end'
   g:line 't.kept = t.kept and t.kept:size(1) == x:size(1) and t.kept or nil'
   g:statements(2 + g:pick(9))
   g:line('return %s, %s, %s', g:vec(), g:num(), g:one {'t', 'log', g:str(), 'object', '...', 'cfg.list', 'count'})
   g.indent = 1
   g:line 'end'
end

local function between(g)
   g:line 'local function change(k)'
   g.indent = 2
   for k = 2, 8 do
      if g:chance(2) then g:line('if k == %d then %s end', k, g:one(changes)) end
   end
   g.indent = 1
   g:line 'end'
end

--- Source text of a seed's program.
function Gen.program(seed)
   local g = setmetatable({state = seed % 2147483646 + 1, out = {}, indent = 1, depth = 0, names = 0, uses = {},
      vars = {vec = {'x', 'y', 'last', 'weight'}, num = {'n', 'count'}, str = {'cfg.name'}, fun = {}, tab = {'t', 'cfg', 'log'},
         mat = {}}}, Gen)
   for _ = 1, 5 do g:pick(10) end
   g.theme = theme(g)
   for _, name in ipairs(g.theme) do g.uses[name] = true end
   captured(g)
   closure(g)
   between(g)
   g:line 'local function state() return count, last, log, buffer, cfg, object, Class, acc, weight, sgd, net, params, grads, criterion, helper end'
   g:line 'return f, state, change'
   return table.concat(g.out, '\n')
end

return Gen
