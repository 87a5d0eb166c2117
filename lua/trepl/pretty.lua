-- Pretty printing: tables as indented lines of keys and values (value -> text), and a print that uses it.
local pretty = {}
local torch = require 'torch'

local esc = string.char(27)
local colors = {number = '[0;36m', string = '[0;32m', key = '[0;34m', other = '[0;35m'}

local function paint(text, kind, color)
   return color and esc .. colors[kind] .. text .. esc .. '[0m' or text
end

-- Keys in order: numbers first, then the rest by name.
local function sorted(t)
   local keys = {}
   for k in pairs(t) do keys[#keys + 1] = k end
   table.sort(keys, function(a, b)
      if type(a) == 'number' and type(b) == 'number' then return a < b end
      if type(a) == 'number' or type(b) == 'number' then return type(a) == 'number' end
      return tostring(a) < tostring(b)
   end)
   return keys
end

local function plain(v)
   local mt = type(v) == 'table' and debug.getmetatable(v)
   return type(v) == 'table' and not (mt and rawget(mt, '__tostring')) and not torch.typename(v)
end

local text

local function tableText(t, color, depth, seen)
   if seen[t] then return paint('{...}', 'other', color) end
   if depth > 8 then return paint('{...}', 'other', color) end
   seen[t] = true
   local indent, out = ('  '):rep(depth + 1), {'{'}
   for _, k in ipairs(sorted(t)) do
      out[#out + 1] = indent .. paint(tostring(k), 'key', color) .. ' : ' .. text(t[k], color, depth + 1, seen)
   end
   seen[t] = nil
   if #out == 1 then return '{}' end
   out[#out + 1] = ('  '):rep(depth) .. '}'
   return table.concat(out, '\n')
end

function text(v, color, depth, seen)
   if plain(v) then return tableText(v, color, depth, seen) end
   if type(v) == 'string' then return paint(depth > 0 and ('%q'):format(v) or v, 'string', color and depth > 0) end
   if torch.isTensor(v) and depth > 0 then -- one line inside a table
      local size = v:dim() > 0 and table.concat(v:size():totable(), 'x') or 'empty'
      return paint(torch.type(v):match '[^.]*$' .. ' - size: ' .. size, 'other', color)
   end
   if type(v) == 'number' then return paint(tostring(v), 'number', color and depth > 0) end
   return tostring(v)
end

--- Text of a value; tables go through their fields.
function pretty.text(v, color)
   return text(v, color, 0, {})
end

--- Makes the global print show plain tables; everything else prints as before.
function pretty.install()
   if pretty.rawprint then return end
   local rawprint = print
   pretty.rawprint = rawprint
   local function show(...)
      local n, any = select('#', ...), false
      for i = 1, n do any = any or plain((select(i, ...))) end
      if not any then return rawprint(...) end
      local out, color = {}, torch.isatty()
      for i = 1, n do out[i] = pretty.text((select(i, ...)), color) end
      rawprint(unpack(out, 1, n))
   end
   rawset(_G, 'print', show)
end

return pretty
