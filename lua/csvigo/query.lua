-- Query: selects rows of a tidy table by the values of its variables (tidy -> function).

-- Row numbers in which a variable has one of the values.
local function rows(index, name, values)
   local found = {}
   if not index[name] then error('[csvigo] no such variable; got ' .. tostring(name), 3) end
   if type(values) ~= 'table' then values = {values} end
   for _, v in ipairs(values) do
      for _, row in ipairs(index[name][tostring(v)] or {}) do found[row] = true end
   end
   return found
end

local function indexOf(tidy)
   local index, count = {}, 0
   for name, column in pairs(tidy) do
      local where = {}
      for row, v in ipairs(column) do
         v = tostring(v)
         where[v] = where[v] or {}
         table.insert(where[v], row)
      end
      index[name], count = where, math.max(count, #column)
   end
   return index, count
end

--- query('all'), query('vars'), query('union' | 'inter', {variable = value or values}).
return function(tidy)
   local index, count = indexOf(tidy)
   local function select(how, wanted)
      local hits, n = {}, 0
      for name, values in pairs(wanted) do
         n = n + 1
         for row in pairs(rows(index, name, values)) do hits[row] = (hits[row] or 0) + 1 end
      end
      local out = {}
      for name, column in pairs(tidy) do
         out[name] = {}
         for row = 1, count do
            if hits[row] and (how == 'union' or hits[row] == n) then table.insert(out[name], column[row]) end
         end
      end
      return out
   end
   return function(what, wanted)
      what = what or 'all'
      if what == 'all' then return tidy end
      if what == 'union' or what == 'inter' then return select(what, wanted or {}) end
      if what == 'vars' then
         local names = {}
         for name in pairs(tidy) do names[#names + 1] = name end
         return names
      end
      if what == 'help' then return print "query('all'), query('vars'), query('union' | 'inter', {variable = value or {values}})" end
      error('[csvigo] query; got ' .. tostring(what) .. ', need all, vars, union, inter or help', 2)
   end
end
