-- Habits of Lua 5.2 that the original's LuaJIT allowed: a call's parenthesis on the next line (source text -> mended source).
local M = {}

local rawloadstring, rawloadfile, rawdofile = loadstring, loadfile, dofile

-- Moves the parenthesis that starts line n to the end of the code above it; nil when there is none.
local function join(lines, n)
   local rest = lines[n] and lines[n]:match '^%s*%((.*)$'
   local above = n - 1
   while above > 0 and lines[above]:match '^%s*$' do above = above - 1 end
   if not rest or above < 1 then return nil end
   local code, comment = lines[above]:match '^(.-)(%s*%-%-.*)$'
   if code and not code:match '^%s*$' then lines[above] = code .. '(' .. comment else lines[above] = lines[above] .. '(' end
   lines[n] = rest
   return lines
end

--- loadstring that mends "ambiguous syntax" and tries again; line numbers stay.
function M.loadstring(text, name)
   local f, why = rawloadstring(text, name)
   local lines
   for _ = 1, 1000 do
      local n = why and why:match ':(%d+): ambiguous syntax'
      if f or not n then break end
      if not lines then
         lines = {}
         for line in (text .. '\n'):gmatch '(.-)\n' do lines[#lines + 1] = line end
      end
      if not join(lines, tonumber(n)) then break end
      f, why = rawloadstring(table.concat(lines, '\n'), name)
   end
   return f, why
end

--- loadfile with the same mending.
function M.loadfile(name, ...)
   local f, why = rawloadfile(name, ...)
   if f or not name or not why:find('ambiguous syntax', 1, true) then return f, why end
   local file = io.open(name, 'rb')
   if not file then return f, why end
   local text = file:read('*a'):gsub('^#[^\n]*', '')
   file:close()
   return M.loadstring(text, '@' .. name)
end

function M.dofile(name)
   if not name then return rawdofile() end
   local f, why = M.loadfile(name)
   if not f then error(why, 0) end
   return f()
end

-- Modules: a searcher behind LuaJIT's own, which stops at a syntax error, so it goes in front of it.
local function searcher(name)
   local path = package.searchpath(name, package.path)
   if not path then return nil end
   local f, why = rawloadfile(path)
   if f then return f end
   if not why:find('ambiguous syntax', 1, true) then return nil end
   f = M.loadfile(path)
   return f
end

rawset(_G, 'loadfile', M.loadfile)
rawset(_G, 'loadstring', M.loadstring)
rawset(_G, 'dofile', M.dofile)
table.insert(package.loaders, 2, searcher)

return M
