-- Rows: reads ops.def (ops.def -> list of checked rows).
-- A row keeps the fields of its entry and gets: kind, id, ins, attrs, outs as lists; nin, nmin, variadic.
local M = {}

local attrKind = { int = 'i', dim = 'i', bool = 'b', float = 'f', dtype = 'd', ints = 'l', dims = 'l' }
local inputTypes = { same = true, any = true, byte = true, long = true, float = true, double = true }
local fields = {}
for f in ('args attrs outs types out shape view kernel formula grad maybe prim lua smooth domain doc init commutes random clears'):gmatch('%S+') do
   fields[f] = true
end

local defaults = {
   EW1 = { args = 'x', lua = 'unary', prim = true },
   EW2 = { args = 'x, y', lua = 'binary', prim = true },
   EW3 = { args = 'x, y, z', lua = '', prim = true },
   EW4 = { args = 'x, y, z, w', lua = '', prim = true },
   RED = { args = 'x', lua = 'reduce', prim = true },
   VIEW = { args = 'x', lua = '', prim = true },
   RAND = { args = '', lua = '', prim = true, random = true },
   COMP = { lua = '', prim = false },
   PRIM = { lua = '', prim = true },
}

local function fail(row, what)
   error(('ops.def: %s: %s'):format(row.name, what), 0)
end

local function parseInputs(row)
   row.ins, row.nmin = {}, 0
   for item in row.args:gmatch('[^,%s]+') do
      local name, rest = item:match('^([%a_][%w_]*)(.*)$')
      if not name then fail(row, 'bad input ' .. item) end
      local typ = rest:match(':(%a+)') or 'same'
      if not inputTypes[typ] then fail(row, 'bad input type ' .. typ) end
      local input = { name = name, type = typ, optional = rest:find('?', 1, true) and true or false }
      if rest:find('...', 1, true) then row.variadic = true end
      row.ins[#row.ins + 1] = input
      if not input.optional then row.nmin = #row.ins end
   end
   row.nin = #row.ins
   if row.variadic and row.nin ~= 1 then fail(row, 'a variadic row has one input') end
   if row.nin > 8 then fail(row, 'too many inputs') end
end

local function parseAttrs(row)
   row.attrs = row.attrs or ''
   local text, list, nv, nl = row.attrs, {}, 0, 0
   if row.kind == 'RED' then text = 'dims:dims, keepdim:bool=0' .. (text ~= '' and ', ' .. text or '') end
   for item in text:gmatch('[^,%s]+') do
      local name, typ, def = item:match('^([%a_][%w_]*):(%a+)=?(.*)$')
      local kind = name and attrKind[typ]
      if not kind then fail(row, 'bad attribute ' .. item) end
      local a = { name = name, type = typ, kind = kind, optional = def ~= '', def = tonumber(def) or 0 }
      if def ~= '' and not tonumber(def) then fail(row, 'bad default of ' .. name) end
      if kind == 'l' then a.slot, nl = nl, nl + 1 else a.slot, nv = nv, nv + 1 end
      list[#list + 1] = a
   end
   if nv > 10 or nl > 4 then fail(row, 'too many attributes') end
   row.attrs = list
end

local function parseOuts(row)
   local list = {}
   for name in (row.outs or 'r'):gmatch('[^,%s]+') do list[#list + 1] = name end
   if #list > 6 then fail(row, 'too many outputs') end
   row.outs, row.nout, row.maybeGrad = list, #list, 0
   for k, name in ipairs(list) do
      if row.maybe and (', ' .. row.maybe .. ','):find(' ' .. name .. ',', 1, true) then row.maybeGrad = row.maybeGrad + 2 ^ (k - 1) end
   end
end

local function checkRow(row)
   if not row.doc then fail(row, 'no doc sentence') end
   if (row.kind == 'EW' or row.kind == 'RED') and not row.expr then fail(row, 'no expression') end
   if row.kind == 'RED' and not row.init then fail(row, 'no initial value') end
   if row.kind == 'COMP' and not row.formula then fail(row, 'no formula') end
   if row.kind == 'PRIM' and not row.shape then fail(row, 'no shape rule') end
   if row.kind == 'RAND' then row.shape = row.shape or 'random' end
   if row.kind ~= 'COMP' and row.grad == nil then fail(row, 'no gradient: say grad = false') end
end

local function newRow(kind, name, entry)
   local row = { name = name, id = name:upper(), expr = entry[1], opkind = kind, kind = kind:match('^EW') or kind }
   for k, v in pairs(defaults[kind]) do row[k] = v end
   for k, v in pairs(entry) do
      if k ~= 1 and not fields[k] then fail(row, 'unknown field ' .. tostring(k)) end
      if k ~= 1 then row[k] = v end
   end
   if not row.args then fail(row, 'no args') end
   parseInputs(row)
   parseAttrs(row)
   parseOuts(row)
   checkRow(row)
   return row
end

-- 'tensor, meta -> tensor' -> { args = {'tensor', 'meta'}, result = 'tensor' }
local function newHelper(name, signature)
   local args, result = {}, signature:match('%->%s*(%a+)')
   for a in signature:match('^(.-)%->'):gmatch('%a+') do args[#args + 1] = a end
   return { name = name, args = args, result = result }
end

--- Reads an op table file.
-- @return rows (in order, also by name), helpers by name
function M.read(path)
   local rows, helpers, env = {}, {}, {}
   for kind in pairs(defaults) do
      env[kind] = function(name)
         return function(entry)
            if rows[name] then error('ops.def: second row named ' .. name, 0) end
            local row = newRow(kind, name, entry)
            rows[#rows + 1], rows[name] = row, row
         end
      end
   end
   function env.HELPER(name)
      return function(signature) helpers[name] = newHelper(name, signature); helpers[#helpers + 1] = helpers[name] end
   end
   local chunk = assert(loadfile(path))
   setfenv(chunk, env)
   chunk()
   return rows, helpers
end

return M
