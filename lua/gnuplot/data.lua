-- Data: what the plotting functions take (arguments -> legend, tensors, style) and the text that gnuplot reads.
local torch = require 'torch'
local data = {}

local styles = {['+'] = 'with points', points = 'with points', ['.'] = 'with dots', dots = 'with dots', ['-'] = 'with lines', lines = 'with lines',
   ['+-'] = 'with linespoints', linespoints = 'with linespoints', ['|'] = 'with boxes', boxes = 'with boxes', ['~'] = 'smooth csplines',
   csplines = 'smooth csplines', v = 'with vectors', V = 'with vectors', vectors = 'with vectors'}

-- gnuplot's words for a style and, for smoothing splines (~0.5), their weight.
local function styleOf(s)
   if styles[s] or s == '' then return styles[s] or '' end
   if s:find('~', 1, true) or s:find('acsplines', 1, true) then
      local weight = s:gsub('~', ''):gsub('acsplines', '')
      return 'smooth acsplines', tonumber(weight)
   end
   return s
end

--- Lists of arguments, one for each curve: f(x, y), f({x, y}, {x, y}), f({{x, y}, {x, y}}).
function data.curves(...)
   local args = {...}
   if #args == 0 then error('[gnuplot] arguments; got none, need a tensor', 3) end
   if type(args[1]) ~= 'table' then return {args} end
   return type(args[1][1]) == 'table' and args[1] or args
end

--- [legend,] up to `most` tensors [, style] of one curve -> legend, list of tensors, style.
function data.parse(args, most)
   local legend, style, list, i = '', '', {}, 1
   if type(args[1]) == 'string' then legend, i = args[1], 2 end
   while torch.isTensor(args[i]) do
      list[#list + 1], i = args[i]:double(), i + 1
   end
   if type(args[i]) == 'string' then style, i = args[i], i + 1 end
   if #list == 0 or #list > most or args[i] ~= nil then
      error(('[gnuplot] arguments; got %s as number %d, need [string,] 1 to %d tensors [, string]'):format(torch.type(args[i]), i, most), 4)
   end
   return legend, list, style
end

-- x and the columns of y, as a table of rows (n, 1 + columns).
local function rowsOf(list)
   local x, y = list[1], list[2]
   if not y and x:dim() == 2 then return x end
   if not y then x, y = torch.range(1, x:size(1)), x end
   if x:dim() > 2 or y:dim() > 2 or x:size(1) ~= y:size(1) then
      error(('[gnuplot] x and y; got %d and %d points, need as many'):format(x:size(1), y:size(1)), 4)
   end
   return torch.cat(x:view(x:size(1), -1), y:view(y:size(1), -1), 2)
end

-- Lines of numbers; weight is a last column.
local function lines(out, rows, weight)
   for _, row in ipairs(rows:totable()) do
      for k, v in ipairs(row) do row[k] = ('%g'):format(v) end
      row[#row + 1] = weight and ('%g'):format(weight)
      out[#out + 1] = table.concat(row, ' ')
   end
end

local function title(legend) return "'-' title '" .. legend:gsub("'", "''") .. "' " end

--- Commands and data of curves in the plane.
function data.plot(curves)
   local heads, out = {}, {}
   for i, args in ipairs(curves) do
      local legend, list, style = data.parse(args, 2)
      local words, weight = styleOf(style)
      local rows = rowsOf(list)
      if words == 'with vectors' and list[2] then rows = rows:index(2, torch.LongTensor {1, 3, 2, 4}) end
      heads[i] = title(legend) .. words
      lines(out, rows, weight)
      out[#out + 1] = 'e'
   end
   return 'plot ' .. table.concat(heads, ', ') .. '\n' .. table.concat(out, '\n')
end

-- Grids x, y, z from z, or as they are given.
local function grids(list)
   if #list == 3 then return unpack(list) end
   local z = list[1]
   if #list ~= 1 or z:dim() ~= 2 then error('[gnuplot] surface; got other than a matrix, need z or x, y, z', 4) end
   local h, w = z:size(1), z:size(2)
   return torch.range(1, h):view(h, 1):expand(h, w):contiguous(), torch.range(1, w):view(1, w):expand(h, w):contiguous(), z
end

--- Commands and data of surfaces (matrices), or of points in space (vectors).
function data.splot(curves, points)
   local heads, out = {}, {}
   for i, args in ipairs(curves) do
      local legend, list = data.parse(args, 3)
      if points and #list ~= 3 then error(('[gnuplot] points; got %d tensors, need x, y, z'):format(#list), 3) end
      local x, y, z = grids(list)
      heads[i] = title(legend) .. (points and 'with points' or 'with lines')
      local rows = torch.cat({x:contiguous():view(-1, 1), y:contiguous():view(-1, 1), z:contiguous():view(-1, 1)}, 2)
      local width = points and rows:size(1) or z:size(2)
      for from = 1, rows:size(1), width do
         lines(out, rows:narrow(1, from, width))
         out[#out + 1] = points and 'e' or ''
      end
      if not points then out[#out + 1] = 'e' end
   end
   return 'set hidden3d\nsplot ' .. table.concat(heads, ', ') .. '\n' .. table.concat(out, '\n')
end

--- Commands and data of a matrix as an image.
function data.image(x, palette)
   if not torch.isTensor(x) or x:dim() ~= 2 then error('[gnuplot] imagesc; got no matrix, need a tensor of 2 dimensions', 3) end
   local out = {('set palette %s\nset xrange [-0.5:%g]\nset yrange [-0.5:%g] reverse\nplot \'-\' matrix with image')
      :format(palette == 'color' and 'color' or 'gray', x:size(2) - 0.5, x:size(1) - 0.5)}
   lines(out, x:double())
   out[#out + 1] = 'e'
   return table.concat(out, '\n')
end

return data
