-- Completion: names that a piece of text may become: globals, fields of tables, methods of tensors and objects (text -> words).

-- Names in a table, its metatable's __index chain, or the class of a userdata, without those that are private.
local function names(value, add)
   for _ = 1, 10 do
      if type(value) == 'table' then
         for k in next, value do if type(k) == 'string' then add(k) end end
      end
      local mt = debug.getmetatable(value)
      if type(mt) ~= 'table' then return end
      if type(value) ~= 'table' then
         for k in next, mt do if type(k) == 'string' then add(k) end end
      end
      local index = rawget(mt, '__index')
      value = type(index) == 'table' and index or nil
      if value == nil then return end
   end
end

-- The value of 'a.b.c' without calling anything that may fail loudly.
local function lookup(path)
   local value = _G
   for name in path:gmatch '[^.:]+' do
      local ok, v = pcall(function() return value[name] end)
      if not ok or v == nil then return nil end
      value = v
   end
   return value
end

local keywords = {'and', 'break', 'do', 'else', 'elseif', 'end', 'false', 'for', 'function', 'if', 'in', 'local', 'nil', 'not', 'or', 'repeat',
   'return', 'then', 'true', 'until', 'while'}

--- Words that begin with the text, sorted.
return function(text)
   local path, sep, start = text:match '^(.*)([.:])([%w_]*)$'
   if not path then path, sep, start = '', '', text end
   local value = path == '' and _G or lookup(path)
   local seen, out = {}, {}
   local function add(name)
      if seen[name] or name:sub(1, #start) ~= start or (name:sub(1, 2) == '__' and start:sub(1, 2) ~= '__') or not name:match '^[%a_][%w_]*$' then return end
      seen[name] = true
      if sep == ':' and type(lookup(path .. '.' .. name)) ~= 'function' then return end
      out[#out + 1] = path .. sep .. name
   end
   if value ~= nil then names(value, add) end
   if path == '' then for _, word in ipairs(keywords) do add(word) end end
   table.sort(out)
   return out
end
