-- Embeds a header into the library as text: luajit embed.lua prelude.h out.c (header -> C string).
local name, out, symbol = arg[1], arg[2], arg[3] or 'rl_prelude_text'
local f = assert(io.open(name))
local text = f:read('*a')
f:close()
text = text:gsub('\n#include "([^"]+)"', function(inc) -- the project's own headers go in whole
   local h = io.open(name:gsub('[^/]*$', '') .. inc)
   if not h then return '\n' end
   local body = h:read('*a')
   h:close()
   return '\n' .. body
end)
local o = assert(io.open(out, 'w'))
o:write(('/* Generated from the kernel prelude. */\nextern const char %s[];\nconst char %s[] =\n'):format(symbol, symbol))
for line in (text .. '\n'):gmatch('(.-)\n') do
   o:write('"', line:gsub('\\', '\\\\'):gsub('"', '\\"'):gsub('%?', '\\?'), '\\n"\n')
end
o:write(';\n')
o:close()
