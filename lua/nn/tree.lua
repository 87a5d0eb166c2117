-- How containers print themselves (module -> text).

local tree = {}

--- Modules one after another: `[input -> (1) -> (2) -> output]`, then each on its own lines.
function tree.chain(self, name)
   local arrows = {}
   for i = 1, #self.modules do arrows[i] = '(' .. i .. ') -> ' end
   local lines = {name .. ' {', '  [input -> ' .. table.concat(arrows) .. 'output]'}
   for i, m in ipairs(self.modules) do
      lines[#lines + 1] = '  (' .. i .. '): ' .. tostring(m):gsub('\n', '\n  ')
   end
   return table.concat(lines, '\n') .. '\n}'
end

--- Modules beside one another, as branches between input and output.
function tree.branches(self, name, last)
   local lines = {name .. ' {', '  input'}
   for i, m in ipairs(self.modules) do
      local final = i == #self.modules
      lines[#lines + 1] = (final and '     `-> (' or '    |`-> (') .. i .. '): '
         .. tostring(m):gsub('\n', '\n  ' .. (final and '       ' or '  |    '))
   end
   lines[#lines + 1] = '  ' .. (last or '   ... -> ') .. 'output'
   return table.concat(lines, '\n') .. '\n}'
end

return tree
