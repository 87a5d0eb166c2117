-- Require: names that are files, as the original's interpreter took them: './x' beside the calling file, 'x.lua' in the current folder
-- (name -> what the file gives). Such a file runs each time it is required.
local paths = require 'paths'
local rawrequire = require

local function network(path)
   require 'nn'
   return require('torch').load(path)
end

local function json(path)
   local file = assert(io.open(path))
   local text = file:read '*a'
   file:close()
   return require('cjson').decode(text)
end

local forms = {
   {'%.lua$', function(path) return dofile(path) end}, {'%.th$', network}, {'%.t7$', network}, {'%.net$', network}, {'%.json$', json}}

-- The loader of a file that is there, by its ending; any other file is a Lua file.
local function loader(path)
   for _, f in ipairs(forms) do
      if path:find(f[1]) then return f[2] end
   end
   return forms[1][2]
end

-- path, how to load it: the name as it is, with an ending, or a folder's init.lua.
local function find(path)
   for _, ending in ipairs {'.lua', '', '.th', '.net', '.json', '/init.lua'} do
      if paths.filep(path .. ending) then return path .. ending, loader(path .. ending) end
   end
end

local function known(name)
   return package.loaded[name] ~= nil or package.preload[name] ~= nil or package.searchpath(name, package.path) or package.searchpath(name, package.cpath)
end

rawset(_G, 'require', function(name)
   if type(name) ~= 'string' then return rawrequire(name) end
   if name:sub(1, 1) == '.' then
      local source = debug.getinfo(2, 'S').source:match '^@(.*)$'
      local path, load = find(paths.concat(source and paths.dirname(source) or '.', name))
      if not path then return rawrequire(name) end
      return load(path)
   end
   if known(name) then return rawrequire(name) end
   local path, load = find('./' .. name)
   if path and not pcall(rawrequire, name) then return load(path) end
   return rawrequire(name)
end)
