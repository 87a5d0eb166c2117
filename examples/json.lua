-- JSON: writes Lua tables (table -> text). Arrays are tables with #t > 0 or marked with json.array; NaN and infinities become null.
local json = {}
local mark = {}

--- Marks a table as an array, so that an empty one prints as [].
function json.array(t)
   return setmetatable(t, mark)
end

local function quote(s)
   return '"' .. s:gsub('[%c"\\]', function(c)
      return c == '"' and '\\"' or c == '\\' and '\\\\' or ('\\u%04x'):format(c:byte())
   end) .. '"'
end

local function number(x)
   if x ~= x or x == math.huge or x == -math.huge then return 'null' end
   return x % 1 == 0 and math.abs(x) < 2 ^ 53 and ('%d'):format(x) or ('%.9g'):format(x)
end

--- Text of a value. Keys of objects are sorted, so equal tables give equal text.
function json.encode(value)
   local kind = type(value)
   if kind == 'number' then return number(value) end
   if kind == 'string' then return quote(value) end
   if kind == 'boolean' or kind == 'nil' then return value == nil and 'null' or tostring(value) end
   assert(kind == 'table', 'cannot write a ' .. kind)
   local parts = {}
   if #value > 0 or getmetatable(value) == mark then
      for i, v in ipairs(value) do parts[i] = json.encode(v) end
      return '[' .. table.concat(parts, ', ') .. ']'
   end
   local keys = {}
   for k in pairs(value) do keys[#keys + 1] = k end
   table.sort(keys)
   for i, k in ipairs(keys) do parts[i] = quote(k) .. ': ' .. json.encode(value[k]) end
   return '{' .. table.concat(parts, ', ') .. '}'
end

--- Writes the text of a value and a newline to a file.
function json.save(path, value)
   local file = assert(io.open(path, 'w'))
   file:write(json.encode(value), '\n')
   file:close()
end

return json
