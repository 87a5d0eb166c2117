-- OptionParser: options of a program in the manner of Python's optparse (arg -> table of options, table of the rest).
local OptionParser = {}
OptionParser.__index = OptionParser

--- OptionParser(usage): '%prog' in the text stands for the program's name.
local function new(usage)
   local self = setmetatable({usage = usage or '%prog [options]', options = {}, names = {}}, OptionParser)
   self:option{'-h', '--help', action = 'callback', help = 'show this help message and exit', callback = function()
      self:help()
      os.exit(0)
   end}
   return self
end

--- Adds an option: {'-n', '--name', dest =, default =, help =, req = true, action = 'store', 'store_true', 'store_false' or 'callback'}.
function OptionParser:option(o)
   o.action = o.action or 'store'
   o.dest = o.dest or (o[#o] or ''):gsub('^%-+', ''):gsub('%-', '_')
   self.options[#self.options + 1] = o
   for _, name in ipairs(o) do self.names[name] = o end
   return self
end

--- Prints a message and the usage, and ends the program.
function OptionParser:fail(message)
   io.stderr:write('error: ' .. message .. '\n')
   self:help()
   os.exit(1)
end

--- Prints the usage and every option.
function OptionParser:help()
   print('Usage: ' .. self.usage:gsub('%%prog', arg and arg[0] or 'program'))
   print('Options:')
   for _, o in ipairs(self.options) do
      local names = table.concat(o, ', ')
      if o.action == 'store' then names = names .. '=' .. o.dest:upper() end
      local default = o.default ~= nil and (' [default = %s]'):format(tostring(o.default)) or ''
      print(('  %-32s %s%s'):format(names, o.help or '', default))
   end
end

-- A text as the type that the default has.
local function converted(o, text)
   if type(o.default) == 'number' then return tonumber(text) end
   if type(o.default) == 'boolean' then return text == 'true' or text == '1' end
   return text
end

local function take(self, o, name, value, args, i, out)
   if o.action == 'store_true' or o.action == 'store_false' then
      out[o.dest] = o.action == 'store_true'
   elseif o.action == 'callback' then
      o.callback(self, o, name, value)
   else
      if value == nil then
         i = i + 1
         value = args[i]
      end
      if value == nil then self:fail('option ' .. name .. ' needs a value') end
      local v = converted(o, value)
      if v == nil then self:fail(('option %s; got %s, need a number'):format(name, value)) end
      out[o.dest] = v
   end
   return i
end

--- Reads the program's arguments (or a table of them): options by dest, and what is no option.
function OptionParser:parse(args)
   args = args or arg or {}
   local out, rest, i = {}, {}, 1
   for _, o in ipairs(self.options) do if o.default ~= nil then out[o.dest] = o.default end end
   while i <= #args do
      local word = args[i]
      local name, value = word:match '^(%-%-[^=]+)=(.*)$'
      local o = self.names[name or word]
      if o then
         i = take(self, o, name or word, value, args, i, out)
      elseif word:find '^%-%-?%a' then
         self:fail('unknown option ' .. word)
      else
         rest[#rest + 1] = word
      end
      i = i + 1
   end
   for _, o in ipairs(self.options) do
      if o.req and out[o.dest] == nil then self:fail('option ' .. o[#o] .. ' is required') end
   end
   return out, rest
end

return setmetatable({new = new}, {__call = function(_, usage) return new(usage) end, __index = OptionParser})
