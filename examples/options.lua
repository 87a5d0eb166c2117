-- Options: reads `--name value` and `--flag` from the command line (arg -> table).

--- Reads options.
-- @param usage  first line of the help
-- @param list  rows {name, default, help}; the default's type is the option's: number, string, or false for a flag
-- @return table of values by name; `--help` prints them and ends the program
return function(usage, list)
   local value, known = {}, {}
   for _, row in ipairs(list) do
      value[row[1]], known[row[1]] = row[2], row
   end
   local function die(message)
      io.stderr:write(message, '\n')
      os.exit(2)
   end
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
   return value
end
