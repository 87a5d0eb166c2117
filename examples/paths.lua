-- Paths: lets a program in examples/ run from a built tree without installing (script's path -> package.path, package.cpath).
-- First line of an example: dofile((arg[0]:match('^(.*/)examples/') or './') .. 'examples/paths.lua')
-- An installed Relume is used when the tree has not been built.
local root = debug.getinfo(1, 'S').source:match '^@(.*)examples/paths%.lua$' or './'
root = root == '' and './' or root
local build = root .. (os.getenv 'BUILD' or 'build')
local built = io.open(build .. '/relume/core.so', 'rb')
if built then
   built:close()
   package.path = ('%s/tree/?.lua;%s/tree/?/init.lua;'):format(build, build) .. package.path
   package.cpath = build .. '/?.so;' .. package.cpath
elseif not package.searchpath('relume.core', package.cpath) then
   io.stderr:write('Relume is neither built here nor installed: run `make` in the repository, or `luarocks --lua-version=5.1 make`.\n')
   os.exit(1)
end
package.path = root .. 'examples/?.lua;' .. package.path
return root
