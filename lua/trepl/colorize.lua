-- Functions by colour: colorize.red(text) -> the text in red, then the terminal's own colour again.
local colors = require 'trepl.colors'

local colorize = {}
for name, code in pairs(colors) do
   colorize[name] = function(text) return code .. text .. colors.none end
end
return colorize
