-- trepl: what the program `th` does (arguments -> script, statements or REPL), and print that goes through tables.
local trepl = {}
package.loaded['trepl'] = trepl

for _, pattern in ipairs {'./?.lua', './?/init.lua'} do
   if not (';' .. package.path .. ';'):find(';' .. pattern .. ';', 1, true) then package.path = package.path .. ';' .. pattern end
end

require 'trepl.globals'
local torch = require 'torch'
require 'trepl.lua52'
require 'trepl.library52'
require 'trepl.require'
local pretty = require 'trepl.pretty'
pretty.install()

local usage = [=[
Usage: th [options] [script.lua [arguments]]

  -e statement   runs a statement
  -l name        requires a package
  -i             enters the interpreter after the script
  -g, -gg        warns about new or unknown globals (-gg: raises an error)
  -v             prints the version
  -h, --help     prints this

Without script and statement: the interpreter.]=]

--- Message with the caller's frames, without those of this program.
function trepl.traceback(e)
   local text = debug.traceback(tostring(e), 3):gsub("\n[^\n]*%[C%]: in function 'xpcall'.*$", '')
   local frames = {}
   for line in (text .. '\n'):gmatch '(.-)\n' do
      if not line:find('trepl/init.lua:', 1, true) then frames[#frames + 1] = line end
   end
   return (table.concat(frames, '\n'):gsub('\nstack traceback:$', ''))
end

-- Runs f with a traceback; true when it returned.
local function protected(f, ...)
   local args, n = {...}, select('#', ...)
   local ok, why = xpcall(function() return f(unpack(args, 1, n)) end, trepl.traceback)
   if not ok then
      io.stdout:flush()
      io.stderr:write('th: ' .. tostring(why) .. '\n')
   end
   return ok
end

-- Warns (or raises) where a global is made or read that is not there.
local function watchGlobals(strict)
   local function tell(what, name)
      local info = debug.getinfo(3, 'Sl')
      local text = ('%s global %s at %s:%d'):format(what, tostring(name), info and info.short_src or '?', info and info.currentline or 0)
      if strict then error(text, 3) end
      io.stderr:write('[th] ' .. text .. '\n')
   end
   local before = getmetatable(_G)
   local index = before and before.__index
   setmetatable(_G, {
      __newindex = function(t, k, v)
         tell('new', k)
         rawset(t, k, v)
      end,
      __index = function(t, k)
         local v = index and index(t, k)
         if v == nil and k ~= '_PROMPT' then tell('unknown', k) end
         return v
      end})
end

local function load_library(name)
   local ok = protected(function()
      local m = require(name)
      if rawget(_G, name) == nil and type(m) == 'table' then rawset(_G, name, m) end
   end)
   return ok
end

local function statement(text)
   return protected(function()
      local f, why = loadstring(text, '=(command line)')
      if not f then error(why, 0) end
      f()
   end)
end

-- {script =, at =, run = {functions}, interactive =, version =, help =, bad =} of the command line.
local function options(args)
   local o, i = {run = {}}, 1
   while args[i] and not o.script do
      local a = args[i]
      if a == '-e' or a == '-l' then
         i = i + 1
         local value = args[i]
         if not value then return {bad = a .. ' needs a value'} end
         o.statements = o.statements or a == '-e'
         o.run[#o.run + 1] = function() return (a == '-e' and statement or load_library)(value) end
      elseif a == '-i' or a == '--interactive' then o.interactive = true
      elseif a == '-g' or a == '-gg' or a == '--globals' or a == '--gglobals' then
         o.run[#o.run + 1] = function() watchGlobals(a == '-gg' or a == '--gglobals') return true end
      elseif a == '-v' or a == '--version' then o.version = true
      elseif a == '-h' or a == '--help' then o.help = true
      elseif a:sub(1, 1) == '-' and a ~= '-' then return {bad = 'unknown option ' .. a}
      else o.script, o.at = a, i end
      i = i + 1
   end
   return o
end

-- Runs the script with the arguments behind it as `arg` and `...`.
local function run_script(args, at)
   local script, own = args[at], {[-1] = args[0]}
   for i = at, #args do own[i - at] = args[i] end
   rawset(_G, 'arg', own)
   return protected(function()
      local f, why = loadfile(script)
      if not f then error(why, 0) end
      f(unpack(own))
   end)
end

--- Does what the command line says and returns the exit status.
function trepl.main(args)
   local o = options(args)
   if o.bad then
      io.stderr:write('th: ' .. o.bad .. '\n' .. usage .. '\n')
      return 1
   end
   if o.help or o.version then
      print(o.help and usage or 'Relume, torch ' .. torch.version .. ', ' .. jit.version)
      return 0
   end
   for _, f in ipairs(o.run) do
      if not f() and not o.interactive then return 1 end
   end
   if o.script and not run_script(args, o.at) and not o.interactive then return 1 end
   if o.interactive or not (o.script or o.statements) then require('trepl.repl').run() end
   return 0
end

--- Starts the interpreter from a program; ends with its input.
function trepl.repl() return require('trepl.repl').run() end

return setmetatable(trepl, {__call = trepl.repl})
