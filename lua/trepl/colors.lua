-- Escape codes of a terminal's colours and styles by name.
local code = {none = '0', bright = '1', dim = '2', underline = '4', blink = '5', reverse = '7', hidden = '8'}
for i, name in ipairs {'black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'} do
   code[name], code['_' .. name] = '0;3' .. i - 1, '4' .. i - 1
   code[name:gsub('^%l', string.upper)] = '1;3' .. i - 1
end

local colors = {}
for name, text in pairs(code) do colors[name] = '\27[' .. text .. 'm' end
return colors
