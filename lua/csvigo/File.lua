-- File: lines of separated values (line <-> list of strings), quoted where a value holds the separator or a quote.
local torch = require 'torch'
local File = torch.class('csvigo.File')

local function quoted(value, separator)
   value = tostring(value)
   if value:find('["\n]') or value:find(separator, 1, true) then return '"' .. value:gsub('"', '""') .. '"' end
   return value
end

-- One quoted value that starts at `from` -> value, place behind its closing quote.
local function unquote(line, from)
   local parts, at = {}, from + 1
   while true do
      local stop = line:find('"', at, true)
      if not stop then error('[csvigo] quote is not closed; got ' .. line, 0) end
      parts[#parts + 1] = line:sub(at, stop - 1)
      if line:sub(stop + 1, stop + 1) ~= '"' then return table.concat(parts, '"'), stop + 1 end
      at = stop + 2
   end
end

--- Values of one line; a space as separator stands for any run of spaces.
local function split(line, separator)
   local out, at = {}, 1
   local pattern, plain = separator, true
   if separator == ' ' then pattern, plain = '%s+', false end
   while true do
      local value, from
      if line:sub(at, at) == '"' then value, from = unquote(line, at) else from = at end
      local first, last = line:find(pattern, from, plain)
      out[#out + 1] = value or line:sub(at, (first or 0) - 1)
      if not first then return out end
      at = last + 1
      if at > #line and separator == ' ' then return out end
   end
end

--- csvigo.File(path, mode of io.open [, separator [, not-a-number is written as an empty value]])
function File:__init(path, mode, separator, nanAsMissing)
   local file, why = io.open(path, mode or 'r')
   if not file then error('[csvigo] ' .. why, 3) end
   self.filepath, self.file, self.separator, self.nan_as_missing = path, file, separator or ',', nanAsMissing or false
end

function File:close() self.file:close() end

--- Iterator over the remaining lines as text.
function File:lines() return self.file:lines() end

--- Values of the next line; nil at the end.
function File:read()
   local line = self.file:read '*l'
   return line and split(line:gsub('\r', ''), self.separator)
end

--- All remaining lines: a list of lists; mode 'large' splits a line each time it is indexed.
function File:readall(mode)
   local lines = {}
   for line in self.file:lines() do
      line = line:gsub('\r', '')
      lines[#lines + 1] = mode == 'large' and line or split(line, self.separator)
   end
   if mode ~= 'large' then return lines end
   return require 'csvigo.large'(lines, function(line) return split(line, self.separator) end)
end

--- Writes a list of values as one line.
function File:write(values)
   local words = {}
   for i, v in ipairs(values) do
      if self.nan_as_missing and v ~= v then v = '' end
      words[i] = quoted(v, self.separator)
   end
   assert(self.file:write(table.concat(words, self.separator), '\n'))
end

--- Writes a list of lists.
function File:writeall(rows)
   for _, row in ipairs(rows) do self:write(row) end
   return true
end

return File
