-- csvigo: tables of separated values, as the rock `csvigo` reads and writes them (file <-> lists or columns).
local xlua = require 'xlua'
local csvigo = {}
package.loaded['csvigo'] = csvigo
rawset(_G, 'csvigo', csvigo)
require 'csvigo.File'

local function says(verbose, text)
   if verbose then print('<csv>', text) end
end

local function expand(path) return (path:gsub('^~', os.getenv 'HOME' or '~')) end

-- Names of the variables and the row where values begin.
local function namesOf(rows, header, start)
   local first = rows[start] or {}
   if header == 'auto' then header = tonumber(first[1]) == nil end
   if header then return first, start + 1 end
   local names = {}
   for i = 1, #first do names[i] = 'var_' .. i end
   return names, start
end

local function tidied(rows, header, skip)
   local names, start = namesOf(rows, header, 1 + skip)
   local tidy = {}
   for _, name in ipairs(names) do tidy[name] = {} end
   for r = start, #rows do
      for i, name in ipairs(names) do table.insert(tidy[name], rows[r][i]) end
   end
   return tidy, names
end

--- csvigo.load(path or {path=, separator=',', mode='tidy', header='auto', verbose=true, skip=0, column_order=false}).
-- Modes: raw (list of rows), tidy (columns by name), query (a function that selects), large (rows split when indexed). Values are strings.
function csvigo.load(...)
   local args = xlua.unpack({...}, 'csvigo.load', 'Loads a file of separated values.',
      {arg = 'path', type = 'string', help = 'file', req = true},
      {arg = 'separator', type = 'string', help = 'separator', default = ','},
      {arg = 'mode', type = 'string', help = 'raw, tidy, query or large', default = 'tidy'},
      {arg = 'header', type = 'string|boolean', help = 'first row has names: true, false or auto', default = 'auto'},
      {arg = 'verbose', type = 'boolean', help = 'says what it does', default = true},
      {arg = 'skip', type = 'number', help = 'rows left out at the start', default = 0},
      {arg = 'column_order', type = 'boolean', help = 'tidy: names in order as first result', default = false})
   local mode = args.mode
   if mode ~= 'raw' and mode ~= 'large' and mode ~= 'tidy' and mode ~= 'query' then
      error('[csvigo] mode; got ' .. mode .. ', need raw, tidy, query or large', 2)
   end
   says(args.verbose, 'parsing file: ' .. args.path)
   local file = csvigo.File(expand(args.path), 'r', args.separator)
   local rows = file:readall(mode)
   file:close()
   says(args.verbose, 'parsing done')
   if mode == 'raw' or mode == 'large' then return rows end
   local tidy, names = tidied(rows, args.header, args.skip)
   if mode == 'query' then return require 'csvigo.query'(tidy) end
   if args.column_order then return names, tidy end
   return tidy
end

-- Columns by name -> rows, with the names as first row.
local function rowsOf(data, header, order)
   if not order then
      order = {}
      for name in pairs(data) do order[#order + 1] = name end
   end
   local rows, from = {header and order or nil}, header and 1 or 0
   for c, name in ipairs(order) do
      for r, v in ipairs(data[name]) do
         rows[from + r] = rows[from + r] or {}
         rows[from + r][c] = v
      end
   end
   return rows
end

--- csvigo.save(path, data) or {path=, data=, separator=',', mode='autodetect', header=true, verbose=true, column_order=, nan_as_missing=}.
function csvigo.save(...)
   local args = xlua.unpack({...}, 'csvigo.save', 'Saves a file of separated values.',
      {arg = 'path', type = 'string', help = 'file', req = true},
      {arg = 'data', type = 'table|function', help = 'rows, columns by name, or a query', req = true},
      {arg = 'separator', type = 'string', help = 'separator', default = ','},
      {arg = 'mode', type = 'string', help = 'raw, tidy or query', default = 'autodetect'},
      {arg = 'header', type = 'boolean', help = 'names as first row', default = true},
      {arg = 'verbose', type = 'boolean', help = 'says what it does', default = true},
      {arg = 'column_order', type = 'table', help = 'names in order'},
      {arg = 'nan_as_missing', type = 'boolean', help = 'not-a-number is written as an empty value', default = false})
   local data, mode = args.data, args.mode
   if mode == 'autodetect' then mode = type(data) == 'function' and 'query' or #data == 0 and 'tidy' or 'raw' end
   if mode ~= 'raw' and mode ~= 'tidy' and mode ~= 'query' then error('[csvigo] mode; got ' .. mode .. ', need raw, tidy or query', 2) end
   says(args.verbose, 'writing to file: ' .. args.path)
   local file = csvigo.File(expand(args.path), 'w', args.separator, args.nan_as_missing)
   if mode == 'query' then data = data 'all' end
   file:writeall(mode == 'raw' and data or rowsOf(data, args.header, args.column_order))
   file:close()
   says(args.verbose, 'writing done')
end

return csvigo
