-- paths: file names and folders, as Torch7's paths package.
local C = require 'relume.core'
local paths = {}
package.loaded['paths'] = paths
rawset(_G, 'paths', paths)

paths.home = os.getenv('HOME') or '/'

function paths.is_win() return false end
function paths.is_mac() return jit and jit.os == 'OSX' or false end
function paths.uname() return C.uname() end
function paths.getregistryvalue() error('[getregistryvalue] registry; got a POSIX system, need Windows', 2) end

--- True for an existing regular file (or anything that is no folder).
function paths.filep(name)
   local kind = C.stat(name)
   return kind ~= nil and kind ~= 'directory'
end

--- True for an existing folder.
function paths.dirp(name)
   return C.stat(name) == 'directory'
end

--- Last part of a path, without `suffix` when it ends so.
function paths.basename(name, suffix)
   name = name:gsub('/+$', '')
   local base = name:match('[^/]*$')
   if base == '' then base = '/' end
   if suffix and suffix ~= '' then
      if suffix:sub(1, 1) ~= '.' and base:sub(-#suffix - 1) == '.' .. suffix then suffix = '.' .. suffix end
      if #base > #suffix and base:sub(-#suffix) == suffix then base = base:sub(1, -#suffix - 1) end
   end
   return base
end

--- Everything before the last part.
function paths.dirname(name)
   name = name:gsub('/+$', '')
   local dir = name:match('^(.*)/[^/]*$')
   if dir == '' then return '/' end
   return dir and (dir:gsub('/+$', '')) or '.'
end

--- Extension without its dot, nil when there is none.
function paths.extname(name)
   return paths.basename(name):match('.%.([^.]+)$')
end

--- Joins parts to an absolute path; `.` and `..` are resolved.
function paths.concat(...)
   local path = ''
   local n = select('#', ...)
   for i = 1, n do
      local part = select(i, ...)
      if part ~= nil then
         if part:sub(1, 1) == '/' then path = part
         else path = path == '' and part or path .. '/' .. part end
      end
   end
   if path:sub(1, 1) ~= '/' then path = C.cwd() .. '/' .. path end
   local parts = {}
   for part in path:gmatch('[^/]+') do
      if part == '..' then parts[#parts] = nil
      elseif part ~= '.' then parts[#parts + 1] = part end
   end
   return '/' .. table.concat(parts, '/')
end

function paths.cwd() return C.cwd() end
function paths.mkdir(name)
   if paths.dirp(name) then return true end
   local parent = paths.dirname(name)
   if parent ~= name and not paths.dirp(parent) then paths.mkdir(parent) end
   return C.mkdir(name)
end
function paths.rmdir(name) return C.rmdir(name) end
function paths.chdir(name) return C.chdir(name) end

--- Removes a folder and all in it; the second argument must be 'yes'.
function paths.rmall(name, sure)
   if sure ~= 'yes' then error("[rmall] confirmation; got " .. tostring(sure) .. ", need 'yes'", 2) end
   if not paths.dirp(name) then return os.remove(name) end
   for entry in paths.files(name) do
      if entry ~= '.' and entry ~= '..' then
         local path = name .. '/' .. entry
         if paths.dirp(path) then paths.rmall(path, sure) else os.remove(path) end
      end
   end
   return C.rmdir(name)
end

local function accept(filter)
   if filter == nil then return function() return true end end
   if type(filter) == 'string' then return function(name) return name:find(filter) ~= nil end end
   return filter
end

--- Iterator over a folder's entries, . and .. included; filter is a pattern or function.
function paths.files(name, filter)
   local list, err = C.readdir(name or '.')
   if not list then error('[files] ' .. tostring(err), 2) end
   local keep, i = accept(filter), 0
   return function()
      repeat i = i + 1 until list[i] == nil or keep(list[i])
      return list[i]
   end
end

function paths.iterfiles(name, filter)
   local keep = accept(filter)
   return paths.files(name, function(f) return paths.filep(name .. '/' .. f) and keep(f) end)
end

function paths.iterdirs(name, filter)
   local keep = accept(filter)
   return paths.files(name, function(f) return f ~= '.' and f ~= '..' and paths.dirp(name .. '/' .. f) and keep(f) end)
end

--- Sorted table of a folder's entries.
function paths.dir(name)
   local list = C.readdir(name or '.')
   if list then table.sort(list) end
   return list
end

--- Folder (or `file` in it) of the Lua file that calls.
function paths.thisfile(file, level)
   local src = debug.getinfo((level or 1) + 1, 'S').source
   if src:sub(1, 1) ~= '@' then return file or nil end
   local full = paths.concat(src:sub(2))
   return file and paths.concat(paths.dirname(full), file) or full
end

--- Runs a file beside the caller's.
function paths.dofile(file, level)
   return dofile(paths.thisfile(file, (level or 1) + 1))
end

--- require for C modules of the original; plain require here.
function paths.require(name) return require(name) end

--- Folder of the running program.
function paths.execdir()
   local exe = C.realpath('/proc/self/exe')
   return exe and paths.dirname(exe)
end

--- First program of the names that is on the PATH.
function paths.findprogram(...)
   for i = 1, select('#', ...) do
      local name = select(i, ...)
      if name:find('/') and paths.filep(name) then return name end
      for dir in (os.getenv('PATH') or ''):gmatch('[^:]+') do
         if paths.filep(dir .. '/' .. name) then return dir .. '/' .. name end
      end
   end
end

function paths.tmpname() return os.tmpname() end

return paths
