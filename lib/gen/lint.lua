-- Lint: proves that ops.def is the only list of ops and that no row, setting or break reason is dead (tree -> complaints).
-- luajit lib/gen/lint.lua, in the root of the repository; exit status 1 when something is wrong.
package.path = 'lib/gen/?.lua;' .. package.path
local rows, helpers = require('rows').read 'lib/ops.def'
local complaints = 0

local function complain(where, what, ...)
   complaints = complaints + 1
   io.stderr:write(('%s: %s\n'):format(where, what:format(...)))
end

local function lines(command)
   local list, pipe = {}, assert(io.popen(command))
   for line in pipe:lines() do list[#list + 1] = line end
   pipe:close()
   return list
end

-- Sources, in the order git lists them: {path, text, lines}.
local sources = {}
for _, path in ipairs(lines 'git ls-files --cached --others --exclude-standard "*.c" "*.h" "*.cu" "*.cuh" "*.lua" "*.def"') do
   local file = io.open(path, 'rb')
   if file then
      local text = file:read '*a'
      file:close()
      sources[#sources + 1] = { path = path, text = text, lines = select(2, text:gsub('\n', '')) }
   end
end

-- 1. Files stay readable.
for _, s in ipairs(sources) do
   local most = s.path:match '^spec/' and 500 or 1000
   if s.path ~= 'lib/ops.def' and s.lines > most then complain(s.path, '%d lines, at most %d: split by family', s.lines, most) end
   if s.text:find '\t' then complain(s.path, 'has a tab') end
end

-- 2. Rows say what they must.
for _, row in ipairs(rows) do
   local where = 'lib/ops.def: ' .. row.name
   if not (row.doc and row.doc:match '%.$') then complain(where, 'needs a doc sentence that ends in a full stop') end
   if row.kind ~= 'COMP' and row.grad == nil and not row.cgrad then complain(where, 'needs a gradient, or grad = false') end
   if row.smooth and row.grad == false then complain(where, 'is smooth but not differentiable') end
end

-- 3. There is no second list: no file names many ops one after the other. The reference of the specs is one by intent: a second definition
--    of every op, independent of the first.
local function isList(path)
   return path == 'lib/ops.def' or path:match '^spec/reference/'
end

-- Longest run of distinct op names, as RL_OP_X or as quoted strings, with nothing but punctuation between.
local function longestRun(text)
   local best, run, last = 0, {}, 1
   local count = 0
   local function name(first, word, after)
      if text:sub(last, first - 1):match '[%w_]' then run, count = {}, 0 end
      if not run[word] then run[word], count = true, count + 1 end
      best, last = math.max(best, count), after
   end
   for first, quote, word, after in text:gmatch '()(["\'])([%l%d_]+)%2?()' do
      if text:sub(after - 1, after - 1) == quote and rows[word] then name(first, word, after) end
   end
   run, count, last = {}, 0, 1
   for first, word, after in text:gmatch '()RL_OP_([%u%d_]+)()' do
      if rows[word:lower()] then name(first, word, after) end
   end
   return best
end

local longest = 12
for _, s in ipairs(sources) do
   if not isList(s.path) then
      local run = longestRun(s.text)
      if run > longest then complain(s.path, 'lists %d ops in a row: facts about ops belong in lib/ops.def', run) end
   end
end

-- 4. Nothing is dead. Text of everything but the tables, and of the formulas.
local all, formulas = {}, {}
for _, s in ipairs(sources) do
   if not s.path:match '%.def$' and not s.path:match '^spec/' then all[#all + 1] = s.text end
end
for _, row in ipairs(rows) do
   formulas[#formulas + 1] = (row.formula or '') .. ' ' .. tostring(row.grad or '')
end
all, formulas = table.concat(all, '\n'), table.concat(formulas, '\n')

local operators = { add = '+', sub = '-', mul = '*', div = '/', neg = '-', pow = '^', lt = '<', le = '<=', gt = '>', ge = '>=', eq = '==', ne = '~=' }
local function reached(row)
   return row.lua and row.lua ~= '' or operators[row.name] or formulas:find('%f[%w_]' .. row.name .. '%f[^%w_]')
      or all:find('RL_OP_' .. row.id .. '%f[^%w_]') or all:find('%.' .. row.name .. '%f[^%w_]') or all:find("op['" .. row.name .. "']", 1, true)
end
for _, row in ipairs(rows) do
   if not reached(row) then print(('note: %s is only callable raw: no Lua spelling, nothing uses it'):format(row.name)) end
end
for _, helper in ipairs(helpers) do
   if not formulas:find('%f[%w_]' .. helper.name .. '%f[^%w_]') then complain('lib/ops.def: ' .. helper.name, 'is a helper that no formula uses') end
end

local function tableRows(path, macro)
   local list, file = {}, io.open(path)
   if not file then return list end
   for id in file:read('*a'):gmatch('\n%s*' .. macro .. '%(%s*([%w_]+)') do list[#list + 1] = id end
   file:close()
   return list
end
local settings = tableRows('lib/env.def', 'RL_ENV')
if #settings > 10 then complain('lib/env.def', '%d settings, at most ten', #settings) end
for _, id in ipairs(settings) do
   if not all:find('RL_ENV_' .. id .. '%f[^%w_]') and not all:find('RELUME_' .. id .. '%f[^%w_]') then
      complain('lib/env.def: ' .. id, 'is a setting that nothing reads')
   end
end

-- Break reasons: keys of the registry in jit/breaks.lua.
local breaks = io.open 'jit/breaks.lua'
if breaks then
   breaks:close()
   for id in pairs(dofile('jit/breaks.lua').reasons) do
      if type(id) == 'string' and not all:find('["\']' .. id:gsub('%-', '%%-') .. '["\']') then
         complain('jit/breaks.lua: ' .. id, 'is a break reason that nothing gives')
      end
   end
end

local prims = 0
for _, row in ipairs(rows) do
   if row.prim then prims = prims + 1 end
end
print(('lint: %d ops, of which %d primitive; %d settings; %d files'):format(#rows, prims, #settings, #sources))
os.exit(complaints == 0 and 0 or 1)
