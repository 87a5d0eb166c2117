-- Large: rows that are split when they are indexed (lines as text -> read-only list). A userdata, so that # works on every LuaJIT.
return function(lines, split)
   local rows = newproxy(true)
   local mt = getmetatable(rows)
   mt.__index = function(_, i)
      if not lines[i] then error(('[csvigo] row; got %s, need 1 to %d'):format(tostring(i), #lines), 2) end
      return split(lines[i])
   end
   mt.__newindex = function() error('[csvigo] rows of a large file are read-only; got an assignment', 2) end
   mt.__len = function() return #lines end
   mt.__tostring = function() return table.concat(lines, '\n', 1, math.min(#lines, 30)) end
   mt.__pairs = function(self)
      local i = 0
      return function()
         i = i + 1
         if i <= #lines then return i, self[i] end
      end
   end
   mt.__ipairs = mt.__pairs
   return rows
end
