-- CmdLine: command line options of a program (arg -> table of parameters), their help text, log files.
local C = require 'relume.core'
local torch = C.torch
local CmdLine = torch.class('torch.CmdLine')

local function isoption(s)
   return s:find('^%-') ~= nil and not tonumber(s)
end

--- torch.CmdLine([argument separator [, option separator]])
function CmdLine:__init(argseparator, keyseparator)
   self.argseparator = argseparator or ','
   self.keyseparator = keyseparator or '='
   self.options, self.arguments, self.helplines = {}, {}, {}
   self.isSilent = false
end

--- No messages from parse and log.
function CmdLine:silent()
   self.isSilent = true
end

--- Adds time stamps to every line that goes to the log.
function CmdLine:addTime(name, format)
   self.timeName, self.timeFormat = name or '', format or '%Y-%m-%d %H:%M:%S'
   self.withTime = true
end

--- Declares a positional argument: cmd:argument(name [, help [, type]]).
function CmdLine:argument(name, help, kind)
   local a = {key = name, name = name:gsub('^%-+', ''), help = help, type = kind}
   self.arguments[#self.arguments + 1] = a
   self.helplines[#self.helplines + 1] = a
end

--- Declares an option: cmd:option('-name', default [, help [, type]]).
function CmdLine:option(key, default, help, kind)
   if default == nil then error('[option] default of ' .. tostring(key) .. '; got nil, need a value', 2) end
   local name = key:gsub('^%-+', '')
   local o = {key = key, name = name, help = help, default = default, type = kind or type(default)}
   self.options[key] = o
   self.helplines[#self.helplines + 1] = o
end

--- Table of the defaults.
function CmdLine:default()
   local params = {}
   for _, o in pairs(self.options) do params[o.name] = o.default end
   return params
end

--- A line of the help text.
function CmdLine:text(line)
   self.helplines[#self.helplines + 1] = line or ''
end

--- Prints the message and the help, and ends the program.
function CmdLine:error(message)
   io.stderr:write('\n', message or '', '\n')
   self:help()
   os.exit(1)
end

local function convert(value, kind)
   if kind == 'number' then return tonumber(value) end
   if kind == 'boolean' then
      if value == 'true' or value == '1' or value == 'yes' then return true end
      if value == 'false' or value == '0' or value == 'no' then return false end
      return nil
   end
   return value
end

function CmdLine:__readArgument__(params, arg, i, nth)
   local a = self.arguments[nth]
   if not a then self:error('invalid argument: ' .. tostring(arg[i])) end
   local value = convert(arg[i], a.type)
   if value == nil then self:error('invalid argument type for argument ' .. a.key .. ' (should be ' .. tostring(a.type) .. ')') end
   params[a.name] = value
   return 1
end

function CmdLine:__readOption__(params, arg, i)
   local key = arg[i]
   local o = self.options[key] or self.options[key:gsub('^%-%-', '-')]
   if not o then self:error('unknown option ' .. key) end
   if o.type == 'boolean' then -- a flag flips its default, unless a value follows
      local value = arg[i + 1] and convert(arg[i + 1], 'boolean')
      if value ~= nil and (arg[i + 1] == 'true' or arg[i + 1] == 'false') then
         params[o.name] = value
         return 2
      end
      params[o.name] = not o.default
      return 1
   end
   local value = arg[i + 1]
   if value == nil then self:error('missing argument for option ' .. key) end
   value = convert(value, o.type)
   if value == nil then self:error('invalid type for option ' .. key .. ' (should be ' .. o.type .. ')') end
   params[o.name] = value
   return 2
end

--- Parameters from a table of words (the global `arg`): defaults, overwritten by what is given.
function CmdLine:parse(arg)
   local params, nth, i = self:default(), 0, 1
   while i <= #arg do
      if arg[i] == '-help' or arg[i] == '-h' or arg[i] == '--help' then
         self:help(arg)
         os.exit(0)
      end
      if isoption(arg[i]) then
         i = i + self:__readOption__(params, arg, i)
      else
         nth = nth + 1
         i = i + self:__readArgument__(params, arg, i, nth)
      end
   end
   if nth < #self.arguments then self:error('not enough arguments') end
   return params
end

-- Text of one parameter in the name of a run.
local function named(self, name, value)
   if type(value) == 'boolean' then value = value and 't' or 'f' end
   return name .. self.keyseparator .. tostring(value)
end

--- A name for the run: the arguments, then the options that differ from their defaults (or are false in `ignore`), prefix,key=value,...
function CmdLine:string(prefix, params, ignore)
   local words, options = {}, {}
   ignore = ignore or {}
   for _, a in ipairs(self.arguments) do
      if params[a.name] ~= nil and not ignore[a.name] then words[#words + 1] = named(self, a.name, params[a.name]) end
   end
   for _, o in pairs(self.options) do
      local value = params[o.name]
      if value ~= nil and not ignore[o.name] and (value ~= o.default or ignore[o.name] == false) then options[#options + 1] = named(self, o.name, value) end
   end
   table.sort(options)
   if prefix and prefix ~= '' then table.insert(words, 1, prefix) end
   for _, word in ipairs(options) do words[#words + 1] = word end
   return table.concat(words, self.argseparator)
end

--- Sends print and io.write to a file as well; writes the parameters first.
function CmdLine:log(file, params)
   local f = type(file) == 'string' and assert(io.open(file, 'w')) or file
   local oldprint, oldwrite = print, io.write
   local function stamp(s)
      if not self.withTime then return s end
      return os.date(self.timeFormat) .. ' ' .. self.timeName .. ' ' .. s
   end
   local function record(s)
      f:write(stamp(s))
      f:flush()
   end
   rawset(_G, 'print', function(...)
      local words = {}
      for k = 1, select('#', ...) do words[k] = tostring((select(k, ...))) end
      if not self.isSilent then oldprint(...) end
      record(table.concat(words, '\t') .. '\n')
   end)
   rawset(io, 'write', function(...)
      if not self.isSilent then oldwrite(...) end
      f:write(...)
      return io.stdout
   end)
   f:write('[program started on ' .. os.date() .. ']\n')
   f:write('[command line arguments]\n')
   local names = {}
   for name in pairs(params or {}) do names[#names + 1] = name end
   table.sort(names)
   for _, name in ipairs(names) do f:write(name .. ' ' .. tostring(params[name]) .. '\n') end
   f:write('[----------------------]\n')
   f:flush()
   return f
end

--- Prints the help text.
function CmdLine:help(arg)
   io.write('Usage: ')
   if arg and arg[0] then io.write(arg[0] .. ' ') end
   io.write('[options]')
   for _, a in ipairs(self.arguments) do io.write(' <' .. a.name .. '>') end
   io.write('\n')
   local width = 0
   for _, line in ipairs(self.helplines) do
      if type(line) == 'table' then width = math.max(width, #line.key) end
   end
   for _, line in ipairs(self.helplines) do
      if type(line) == 'table' then
         local default = line.default ~= nil and ' [' .. tostring(line.default) .. ']' or ''
         io.write('  ' .. line.key .. (' '):rep(width - #line.key + 1) .. (line.help or '') .. default .. '\n')
      else
         io.write(line .. '\n')
      end
   end
end

return CmdLine
