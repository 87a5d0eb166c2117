-- Printing: tensors and storages as Torch7 prints them (elements -> column format -> text).
-- Integers get a width of their largest; others four decimals, a common scale when they are all large or small, exponents when they spread.
local C = require 'relume.core'
local torch = C.torch
local M = {}
local floor, log10, abs, huge = math.floor, math.log10, math.abs, math.huge

local function exponent(v)
   return v == 0 and 1 or floor(log10(v)) + 1
end

-- Smallest and largest magnitude of the finite values, and whether all are integers.
local function survey(values)
   local least, most, ints = huge, 0, true
   for i = 1, #values do
      local v = values[i]
      local m = abs(v)
      if m < huge then -- neither NaN nor infinite
         if v ~= floor(v) then ints = false end
         if m < least then least = m end
         if m > most then most = m end
      end
   end
   if least == huge then least = 0 end
   return exponent(least), exponent(most), ints
end

-- values -> function that prints one, scale or nil, width
local function layout(values)
   local lo, hi, ints = survey(values)
   local format, scale, width
   if ints then
      if hi > 9 then format, width = '%11.5e', 11
      else width = hi + 1 format = '%' .. width .. 'd' end
   elseif hi - lo > 4 then
      width = (abs(hi) > 99 or abs(lo) > 99) and 12 or 11
      format = '%' .. width .. '.4e'
   elseif hi > 5 or hi < 0 then
      width, scale = 7, 10 ^ (hi - 1)
      format = '%7.4f'
   else
      width = hi == 0 and 7 or hi + 6
      format = '%' .. width .. '.4f'
   end
   local odd = '%' .. width .. 's'
   local function show(v)
      if v ~= v then return odd:format('nan') end
      if abs(v) == huge then return odd:format(v > 0 and 'inf' or '-inf') end
      return format:format(scale and v / scale or v)
   end
   return show, scale, width
end

local function column(values)
   local show, scale = layout(values)
   local out = {}
   if scale then out[1] = ('%g *\n'):format(scale) end
   for i = 1, #values do out[#out + 1] = show(values[i]) .. '\n' end
   return table.concat(out)
end

local function flatten(rows)
   local all = {}
   for i = 1, #rows do
      for j = 1, #rows[i] do all[#all + 1] = rows[i][j] end
   end
   return all
end

-- rows: table of rows. Wide matrices print in blocks of columns that fit in 80 characters.
local function matrix(rows, ncol, indent)
   local show, scale, width = layout(flatten(rows))
   local per_line = math.max(floor((80 - #indent) / (width + 1)), 1)
   local out = {indent}
   local function put(s) out[#out + 1] = s end
   for first = 1, ncol, per_line do
      local last = math.min(first + per_line - 1, ncol)
      if per_line < ncol then
         if first ~= 1 then put('\n') end
         put('Columns ' .. first .. ' to ' .. last .. '\n' .. indent)
      end
      if scale then put(('%g *\n '):format(scale) .. indent) end
      for i = 1, #rows do
         for j = first, last do
            put(show(rows[i][j]))
            put(j == last and '\n' or ' ')
         end
         if i ~= #rows then put(scale and indent .. ' ' or indent) end
      end
   end
   return table.concat(out)
end

-- Tables nested deeper than a matrix: each matrix under a line of its indices; the first index runs fastest.
local function blocks(values, sizes)
   local out, outer = {}, #sizes - 2
   local index = {}
   for d = 1, outer do index[d] = 1 end
   while true do
      local t = values
      for d = 1, outer do t = t[index[d]] end
      if #out > 0 then out[#out + 1] = '\n' end
      out[#out + 1] = '(' .. table.concat(index, ',') .. ',.,.) = \n' .. matrix(t, sizes[#sizes], ' ')
      local d = 1
      while d <= outer and index[d] == sizes[d] do
         index[d] = 1
         d = d + 1
      end
      if d > outer then return table.concat(out) end
      index[d] = index[d] + 1
   end
end

local function footer(x, text)
   return '[' .. torch.typename(x) .. ' ' .. text .. ']\n'
end

--- Text of a tensor. A fake one has no elements: only its type and sizes are shown.
function M.tensor(x)
   if x:nElement() == 0 or x:dim() == 0 then
      if x:dim() > 0 then return footer(x, 'of size ' .. table.concat(x:size():totable(), 'x')) end
      if x:nElement() == 0 then return footer(x, 'with no dimension') end
      if C.isFake(x) then return footer(x, 'of a number, fake') end
      return column({x:totable()}) .. footer(x, 'of size 1')
   end
   local sizes = x:size():totable()
   local size = 'of size ' .. table.concat(sizes, 'x')
   if C.isFake(x) then return footer(x, size .. ', fake') end
   local values = x:totable()
   local body
   if #sizes == 1 then body = column(values)
   elseif #sizes == 2 then body = matrix(values, sizes[2], '')
   else body = blocks(values, sizes) end
   return body .. footer(x, size)
end

--- Text of a storage: one element a line.
function M.storage(s)
   if s:size() == 0 then return footer(s, 'of size 0') end
   return column(s:totable()) .. footer(s, 'of size ' .. s:size())
end

return M
