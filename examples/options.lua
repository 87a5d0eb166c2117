-- Options: reads `--name value` and `--flag` from the command line (arg -> table).

-- What a value should have been, nil when it is right.
local function wrong(row, value)
   local check = row[4]
   if type(check) == 'number' and (value < check or value % 1 ~= 0) then return ('a whole number from %d on'):format(check) end
   if check == 'file' and value ~= '' then
      local file = io.open(value, 'ab')
      if not file then return 'a file that can be written' end
      file:close()
   elseif type(check) == 'table' then
      local allowed = {}
      for _, word in ipairs(check) do allowed[word] = true end
      for word in (value .. ','):gmatch(check.many and '([^,]*),' or '(.*),') do
         if not allowed[word] then return (check.many and 'some of ' or 'one of ') .. table.concat(check, ', ') end
      end
   end
end

--- Reads options.
-- @param usage  first line of the help
-- @param list  rows {name, default, help, check}; the default's type is the option's: number, string, or false for a flag. The check is the
-- least whole number, 'file' for a file to be written, or a list of words, of which the value is one (or several, comma between: many = true)
-- @return table of values by name, and `die`, which ends the program with a message and status 2, as a wrong option does; `--help` prints
-- the options and ends the program
return function(usage, list)
   local value, known = {}, {}
   for _, row in ipairs(list) do
      value[row[1]], known[row[1]] = row[2], row
   end
   local function die(message)
      io.stderr:write(message, '\n')
      os.exit(2)
   end
   value.die = die
   local i = 1
   while i <= #arg do
      local name = arg[i]:match '^%-%-?(.+)$'
      if name == 'help' or name == 'h' then
         print(usage)
         for _, row in ipairs(list) do
            print(('  --%-10s %s%s'):format(row[1], row[3], row[2] and (' (%s)'):format(tostring(row[2])) or ''))
         end
         os.exit(0)
      end
      local row = name and known[name]
      if not row then die(('unknown option %s; --help lists them'):format(arg[i])) end
      if row[2] == false then
         value[name] = true
      else
         i = i + 1
         local text = arg[i]
         if not text then die(('option --%s needs a value'):format(name)) end
         value[name] = type(row[2]) == 'number' and (tonumber(text) or die(('option --%s needs a number, got %s'):format(name, text))) or text
      end
      i = i + 1
   end
   for _, row in ipairs(list) do
      local need = row[4] and value[row[1]] ~= row[2] and wrong(row, value[row[1]])
      if need then die(('option --%s needs %s, got %s'):format(row[1], need, tostring(value[row[1]]))) end
   end
   return value
end
