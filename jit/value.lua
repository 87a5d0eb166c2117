-- Values and sources: what the evaluator keeps for a Lua value, and where that value can be loaded from again
-- (raw Lua value, source -> value).
--
-- Kinds (field k):
--   const   v: nil, boolean, string, number or cdata known at capture. With src: loaded, its guard is written when it is looked at
--   num     a number that is loaded or computed from loaded ones; e is its expression, hint its value now
--   gnum    a number that the graph computes (fake: rank-0 tensor)
--   tensor  real and src, or fake only when made inside
--   table   real and src, or made inside. f: fields read or written, d: keys written, order: their order
--   func    real and src, or proto and cells when made inside
--   thread  a coroutine made inside (co, see coroutine.lua)
--   udata   other userdata, by identity
--
-- Sources (field kind): arg vararg upv fupv field len grad view const. A source's id is the same in every capture of a closure.

jit.off(true, true) -- each path is evaluated once: traces would not pay, and would push out the program's

local M = {}

local fmt = string.format
local function addr(x) return fmt('%p', x) end
M.addr = addr

-- Constants ---------------------------------------------------------------------------------------------------------------------

local NIL = {k = 'const'}
local TRUE, FALSE = {k = 'const', v = true}, {k = 'const', v = false}
M.NIL, M.TRUE, M.FALSE = NIL, TRUE, FALSE

--- Value of a Lua constant without a source.
function M.const(v)
   if v == nil then return NIL elseif v == true then return TRUE elseif v == false then return FALSE end
   return {k = 'const', v = v}
end

-- Sources -----------------------------------------------------------------------------------------------------------------------

local function keyName(key)
   local t = type(key)
   if t == 'string' then return key end
   if t == 'number' or t == 'boolean' then return '[' .. tostring(key) .. ']' end
   return '<' .. addr(key) .. '>'
end

function M.argument(i, name) return {kind = 'arg', key = i, id = 'a' .. i, text = name or 'argument ' .. i} end
function M.vararg(i) return {kind = 'vararg', key = i, id = 'v' .. i, text = 'argument ...' .. i} end
function M.constant(x, text) return {kind = 'const', value = x, id = addr(x), text = text or 'constant'} end

--- Upvalue i of a function known by identity.
function M.upvalue(f, i, name)
   return {kind = 'upv', f = f, key = i, id = 'u' .. tostring(debug.upvalueid(f, i)):match '0x%x+', text = name ~= '' and name or 'upvalue ' .. i}
end

--- Upvalue i of a function that is loaded anew each call.
function M.fupvalue(parent, i, name)
   return {kind = 'fupv', parent = parent, key = i, id = parent.id .. '^' .. i, text = name ~= '' and name or 'upvalue ' .. i}
end

function M.field(parent, key)
   local name = keyName(key)
   local text = type(key) == 'string' and name or name
   if parent.text ~= 'globals' then text = parent.text .. (type(key) == 'string' and '.' or '') .. name end
   return {kind = 'field', parent = parent, key = key, id = parent.id .. '.' .. name, text = text}
end

--- Length of a table.
function M.length(parent) return {kind = 'len', parent = parent, id = parent.id .. '#', text = '#' .. parent.text} end
--- The entry of a table for an object that is loaded itself.
function M.at(parent, index)
   return {kind = 'at', parent = parent, index = index, id = parent.id .. '@' .. index.id, text = parent.text .. '[' .. index.text .. ']'}
end

--- What a tape has for a module, opened (see records.lua).
function M.opened(parent, module) return {kind = 'opened', parent = parent, module = module, id = parent.id .. '!', text = parent.text} end

--- What a tape has for a module: 'pending' (left by a compiled forward), else 'none'; 'real' where eager's own record may not be made again.
function M.recordState(raw, once)
   if raw ~= nil and (type(raw) == 'userdata' or raw.pending or raw.held) then return 'pending' end
   return once and raw ~= nil and 'real' or 'none'
end

function M.gradient(parent) return {kind = 'grad', parent = parent, id = parent.id .. '~grad', text = parent.text .. ':grad()'} end

local function exprId(e)
   if e.op == 'src' then return e.src.id end
   if e.op == 'k' then return tostring(e.v) end
   return ('%s(%s,%s)'):format(e.name or e.op, exprId(e.a), e.b and exprId(e.b) or '')
end

--- A view of a tensor, made anew each call: f(tensor, numbers).
function M.view(parent, f, name, exprs)
   local ids = {}
   for i, e in ipairs(exprs) do ids[i] = exprId(e) end
   return {kind = 'view', parent = parent, f = f, exprs = exprs, id = ('%s~%s(%s)'):format(parent.id, name, table.concat(ids, ',')),
      text = parent.text .. ':' .. name .. '()'}
end

--- True when a source, or one that it is loaded from, is in a set of ids.
function M.within(src, set)
   while src do
      if set[src.id] then return true end
      src = src.parent
   end
   return false
end

-- Kinds -------------------------------------------------------------------------------------------------------------------------

local LUATYPE = {num = 'number', gnum = 'number', tensor = 'userdata', table = 'table', func = 'function', udata = 'userdata', thread = 'thread'}

--- Lua's type name of a value; writes no guard.
function M.luatype(v)
   return LUATYPE[v.k] or type(v.v)
end

function M.isNumber(v)
   return v.k == 'num' or v.k == 'const' and type(v.v) == 'number'
end

local okNew, new = pcall(require, 'table.new')
if not okNew then new = function() return {} end end
M.tableNew = new

--- A table made by the evaluated program. narray, nhash: what LuaJIT makes room for; the shadow has the same keys in the same places, so that
-- lengths and orders are those of the real one.
function M.newTable(narray, nhash)
   narray, nhash = narray or 0, nhash or 0
   return {k = 'table', f = {}, d = {}, order = {}, shadow = new(narray, nhash), meta = false, narray = narray, nhash = nhash}
end

--- Makes room in the array of a made table, as LuaJIT does when the end of a constructor stores elements up to n - 1.
function M.growArray(t, n)
   if n <= (t.narray > 0 and t.narray + 1 or 0) then return end
   local shadow = new(n, t.nhash)
   for key, v in pairs(t.shadow) do shadow[key] = v end
   t.shadow, t.narray = shadow, n
end

--- Number expression of a value that isNumber accepts.
function M.expr(v)
   if v.k == 'num' then return v.e end
   return {op = 'k', v = v.v}
end

function M.num(e, hint) return {k = 'num', e = e, hint = hint} end

return M
