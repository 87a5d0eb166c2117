-- Formula parser: text -> statements, by operator precedence (Pratt).
-- A statement is { names, expr } or, for `return`, { exprs = ... }. An expression node has a tag:
--   num name nil bool list index call un bin and or not
local M = {}

local function tokens(text)
   local list, i = {}, 1
   while true do
      i = text:find('%S', i)
      if not i then break end
      local s = text:match('^%d+%.?%d*[eE][+-]?%d+', i) or text:match('^%d+%.%d+', i) or text:match('^%d+', i)
      local kind = s and 'num'
      if not s then s = text:match('^[%a_][%w_]*', i); kind = s and 'name' end
      if not s then s = text:match('^[~=<>]=', i) or text:match('^%.%.', i) or text:match('^[-+*/%%^(){}%[%],;=<>#]', i); kind = s end
      if not s then error('bad character at ' .. text:sub(i, i + 10), 0) end
      if kind == 'name' and (s == 'and' or s == 'or' or s == 'not' or s == 'return') then kind = s end
      list[#list + 1] = { kind = kind, text = s }
      i = i + #s
   end
   list[#list + 1] = { kind = 'end', text = 'end of formula' }
   return list
end

local binary = { ['or'] = 1, ['and'] = 2, ['=='] = 3, ['~='] = 3, ['<'] = 3, ['>'] = 3, ['<='] = 3, ['>='] = 3,
   ['..'] = 4, ['+'] = 5, ['-'] = 5, ['*'] = 6, ['/'] = 6, ['%'] = 6, ['^'] = 8 }
local UNARY = 7

local function parser(text)
   local P = { list = tokens(text), pos = 1 }
   function P:peek() return self.list[self.pos].kind end
   function P:next()
      local t = self.list[self.pos]
      self.pos = self.pos + 1
      return t
   end
   function P:expect(kind)
      local t = self:next()
      if t.kind ~= kind then error(('got %s, need %s'):format(t.text, kind), 0) end
      return t
   end
   function P:accept(kind)
      if self:peek() == kind then return self:next() end
   end
   return P
end

local expression

local function expressions(P, close)
   local list = {}
   if not P:accept(close) then
      repeat list[#list + 1] = expression(P, 0) until not P:accept(',')
      P:expect(close)
   end
   return list
end

local constants = { ['true'] = { tag = 'bool', value = true }, ['false'] = { tag = 'bool', value = false }, ['nil'] = { tag = 'nil' } }

local function primary(P)
   local t = P:next()
   if t.kind == 'num' then return { tag = 'num', value = tonumber(t.text), int = not t.text:find('[.eE]') } end
   if t.kind == '{' then return { tag = 'list', items = expressions(P, '}') } end
   if t.kind == '-' then return { tag = 'un', a = expression(P, UNARY) } end
   if t.kind == 'not' then return { tag = 'not', a = expression(P, UNARY) } end
   if t.kind == '#' then return { tag = 'len', a = expression(P, UNARY) } end
   if t.kind == '(' then
      local e = expression(P, 0)
      P:expect(')')
      return e
   end
   if t.kind ~= 'name' then error('unexpected ' .. t.text, 0) end
   if constants[t.text] then return constants[t.text] end
   if P:accept('(') then return { tag = 'call', name = t.text, args = expressions(P, ')') } end
   return { tag = 'name', name = t.text }
end

local function postfix(P)
   local e = primary(P)
   while P:accept('[') do
      e = { tag = 'index', a = e, i = expression(P, 0) }
      P:expect(']')
   end
   return e
end

function expression(P, limit)
   local left = postfix(P)
   while true do
      local op = P:peek()
      local prec = binary[op]
      if not prec or prec <= limit then return left end
      P:next()
      local right = expression(P, op == '^' and prec - 1 or prec)
      local tag = (op == 'and' or op == 'or') and op or 'bin'
      left = { tag = tag, op = op, a = left, b = right }
   end
end

local function statement(P)
   if P:accept('return') then
      local list = {}
      repeat list[#list + 1] = expression(P, 0) until not P:accept(',')
      return { exprs = list }
   end
   local names = {}
   repeat names[#names + 1] = P:expect('name').text until not P:accept(',')
   P:expect('=')
   return { names = names, expr = expression(P, 0) }
end

--- Parses the statements of a formula; an error message names what was not understood.
function M.statements(text)
   local P, list = parser(text), {}
   while P:peek() ~= 'end' do
      list[#list + 1] = statement(P)
      if not P:accept(';') then break end
   end
   P:expect('end')
   return list
end

return M
