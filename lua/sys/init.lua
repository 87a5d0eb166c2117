-- sys: clock, shell commands, file names, colours, as Torch7's sys package.
local C = require 'relume.core'
local paths = require 'paths'
local sys = {}
package.loaded['sys'] = sys
rawset(_G, 'sys', sys)

sys.OS = 'linux'
sys.prefix = os.getenv('TORCH_PREFIX') or '/usr/local'

local esc = string.char(27)
sys.COLORS = {none = esc .. '[0m', black = esc .. '[0;30m', red = esc .. '[0;31m', green = esc .. '[0;32m', yellow = esc .. '[0;33m',
   blue = esc .. '[0;34m', magenta = esc .. '[0;35m', cyan = esc .. '[0;36m', white = esc .. '[0;37m', Black = esc .. '[1;30m', Red = esc .. '[1;31m',
   Green = esc .. '[1;32m', Yellow = esc .. '[1;33m', Blue = esc .. '[1;34m', Magenta = esc .. '[1;35m', Cyan = esc .. '[1;36m', White = esc .. '[1;37m',
   _black = esc .. '[40m', _red = esc .. '[41m', _green = esc .. '[42m', _yellow = esc .. '[43m', _blue = esc .. '[44m', _magenta = esc .. '[45m',
   _cyan = esc .. '[46m', _white = esc .. '[47m'}
package.loaded['sys.colors'] = sys.COLORS

--- Seconds since 1970, with a fraction.
function sys.clock() return C.now() end

local started
function sys.tic() started = C.clock() end

--- Seconds since sys.tic.
function sys.toc(verbose)
   local s = C.clock() - (started or C.clock())
   if verbose then print(s) end
   return s
end

function sys.sleep(seconds) C.sleep(seconds) end
function sys.usleep(microseconds) C.sleep(microseconds * 1e-6) end
function sys.isNaN(x) return x ~= x end

--- Output of a shell command, without its last newline.
function sys.execute(command)
   local f = assert(io.popen(command))
   local s = f:read('*a')
   f:close()
   return (s:gsub('^%s*', ''):gsub('%s*$', ''))
end
sys.fexecute = sys.execute

function sys.uname()
   return C.uname():lower()
end

local function list(options)
   return function(dir)
      local s = sys.execute('ls ' .. options .. ' ' .. (dir or '.'))
      print(s)
      return s
   end
end
sys.ls, sys.ll, sys.la, sys.lla = list(''), list('-l'), list('-a'), list('-la')

--- Folder and file name of the Lua file that calls.
function sys.fpath(level)
   local src = debug.getinfo((level or 1) + 1, 'S').source:gsub('^@', '')
   local full = paths.concat(src)
   return paths.dirname(full), paths.basename(full)
end
package.loaded['sys.fpath'] = sys.fpath

function sys.dirname(name) return paths.dirname(name) end
function sys.concat(...) return paths.concat(...) end
function sys.split(s, sep) return s:split(sep) end

return sys
