-- REPL: reads statements and expressions, evaluates them, prints results (lines -> values).
local torch = require 'torch'
local C = require 'relume.core'
local pretty = require 'trepl.pretty'
local input = require 'trepl.input'
local repl = {}

-- A chunk for the text: an expression, else a statement. Returns the function, or nil, the message and whether more lines may complete it.
local function compile(text)
   local expression = text:match '^%s*=(.*)$' or text
   local f = loadstring('return ' .. expression, '=stdin')
   if f then return f end
   local why
   f, why = loadstring(text, '=stdin')
   if f then return f end
   return nil, why, why:find "near '<eof>'" ~= nil or why:find 'near <eof>' ~= nil
end

local function show(results, n)
   local color = torch.isatty()
   for i = 1, n do pretty.rawprint(pretty.text(results[i], color)) end
end

local function evaluate(f)
   local started = C.clock()
   local function pack(ok, ...) return ok, select('#', ...), {...} end
   local ok, n, results = pack(xpcall(f, require('trepl').traceback))
   if not ok then
      io.stdout:flush()
      io.stderr:write(tostring(results[1]) .. '\n')
      return
   end
   show(results, n)
   rawset(_G, '_RESULTS', results)
   if n > 0 then rawset(_G, '_LAST', results[1]) end
   if torch.isatty() then pretty.rawprint((' '):rep(70) .. ('[%.4fs]'):format(C.clock() - started)) end
end

local help = [[
Expressions print their value; `= x` does too. Tab completes names, fields of tables and methods of tensors.
   $ command    runs a shell command
   ? name       says what a value is
   exit, ^D     ends
_LAST holds the last value, _RESULTS all of the last line.]]

-- Lines that are no Lua: true when one was handled, 'exit' to end.
local function command(line)
   if line:match '^%s*exit%s*$' or line:match '^%s*quit%s*$' then return 'exit' end
   local shell = line:match '^%s*%$%s*(.*)$'
   if shell then
      os.execute(shell)
      return true
   end
   local topic = line:match '^%s*%?%s*(.-)%s*$'
   if topic == '' then
      print(help)
      return true
   elseif topic then
      local f = loadstring('return ' .. topic)
      local ok, value = pcall(f or error)
      print(f and ok and (topic .. ' is a ' .. torch.type(value)) or 'nothing of this name')
      return true
   end
   return false
end

-- Reads until the lines make a chunk; nil at the end of the input, '' when there is nothing to do.
local function chunk()
   local text = input.line(rawget(_G, '_PROMPT') or 'th> ')
   if not text then return nil end
   if text:match '^%s*$' then return '' end
   local done = command(text)
   if done == 'exit' then return nil end
   if done then return '' end
   local f, why, more = compile(text)
   while not f and more do
      local line = input.line('..> ')
      if not line then break end
      text = text .. '\n' .. line
      f, why, more = compile(text)
   end
   input.remember((text:gsub('\n', ' ')))
   if f then return f end
   io.stderr:write(why .. '\n')
   return ''
end

--- Runs until the input ends.
function repl.run()
   local tty = torch.isatty(io.stdin)
   if tty then print('Relume, torch ' .. torch.version .. ', ' .. jit.version .. '. ? for help.') end
   input.open(tty)
   while true do
      local f = chunk()
      if f == nil then break end
      if f ~= '' then evaluate(f) end
   end
   input.close()
   if tty then io.write('\n') end
end

return repl
