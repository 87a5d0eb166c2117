-- xlua: progress bars, unpacking of arguments, small helpers, as Torch7's xlua package.
local C = require 'relume.core'
local sys = require 'sys'
local xlua = {}
package.loaded['xlua'] = xlua
rawset(_G, 'xlua', xlua)

--- print that goes through tables too.
function xlua.print(obj, ...)
   if type(obj) == 'table' then print(xlua.table2string(obj)) else print(obj) end
   if select('#', ...) > 0 then xlua.print(...) end
end

--- A table as text, nested ones indented.
function xlua.table2string(t, newline)
   local out = {}
   local sep = newline and '\n' or ' '
   for k, v in pairs(t) do
      out[#out + 1] = tostring(k) .. '=' .. (type(v) == 'table' and not getmetatable(v) and '{' .. xlua.table2string(v, newline) .. '}' or tostring(v))
   end
   return table.concat(out, sep)
end

function xlua.log(file)
   local f = io.open(file, 'a')
   local old = print
   rawset(_G, 'print', function(...)
      old(...)
      local words = {}
      for k = 1, select('#', ...) do words[k] = tostring((select(k, ...))) end
      f:write(table.concat(words, '\t') .. '\n')
      f:flush()
   end)
end

--- Seconds as text: 1h2m, 3m4s, 5s6ms ...
function xlua.formatTime(seconds)
   local days = math.floor(seconds / 86400)
   seconds = seconds - days * 86400
   local hours = math.floor(seconds / 3600)
   seconds = seconds - hours * 3600
   local minutes = math.floor(seconds / 60)
   seconds = seconds - minutes * 60
   local whole = math.floor(seconds)
   local ms = math.floor((seconds - whole) * 1000)
   local parts, units = {}, {{days, 'D'}, {hours, 'h'}, {minutes, 'm'}, {whole, 's'}, {ms, 'ms'}}
   for _, u in ipairs(units) do
      if u[1] > 0 and #parts < 2 then parts[#parts + 1] = u[1] .. u[2] end
   end
   return #parts == 0 and '0ms' or table.concat(parts)
end

local bar = {}

--- Progress bar for step `current` of `goal`, redrawn in place.
function xlua.progress(current, goal)
   local percent = math.floor(current * 100 / goal)
   local now = C.clock()
   if not bar.start or current < (bar.current or 0) or goal ~= bar.goal then bar = {start = now, last = now, goal = goal} end
   local step = current > (bar.current or 0) and (now - bar.start) / math.max(current - (bar.first or 0), 1) or 0
   bar.first = bar.first or current
   bar.current = current
   if not C.isatty(1) and current ~= goal and percent == bar.percent then return end
   bar.percent = percent
   local width = 50
   local done = math.floor(width * current / goal)
   io.write('\r [' .. ('='):rep(done) .. (done < width and '>' or '') .. ('.'):rep(width - done - 1) .. '] ' .. current .. '/' .. goal
      .. ' ETA: ' .. xlua.formatTime(step * (goal - current)) .. ' | Step: ' .. xlua.formatTime(step) .. ' ')
   if current == goal then
      io.write('\n')
      bar = {}
   end
   io.flush()
end

--- Usage text: usage(name, description, example, {arg=, type=, help=, default=, req=} ...).
function xlua.usage(name, description, example, ...)
   local lines = {name, description or '', example and 'example: ' .. example or ''}
   for i = 1, select('#', ...) do
      local a = select(i, ...)
      lines[#lines + 1] = '   ' .. tostring(a.arg) .. ' = ' .. tostring(a.type) .. (a.req and '  -- required: ' or '  -- ') .. tostring(a.help or '')
         .. (a.default ~= nil and '  [default = ' .. tostring(a.default) .. ']' or '')
   end
   return table.concat(lines, '\n')
end
xlua.usage_module = xlua.usage

local function matches(value, kinds)
   if not kinds or kinds == '*' then return true end
   local torch = rawget(_G, 'torch')
   local t = torch and torch.type(value) or type(value)
   for kind in kinds:gmatch('[^|%s]+') do
      if kind == t or kind == type(value) then return true end
   end
   return false
end

--- Unpacks named (one table) or ordered arguments against their declarations -> table by name, then the values in order.
function xlua.unpack(args, name, description, ...)
   local defs = {...}
   local named = #args == 1 and type(args[1]) == 'table' and not (rawget(_G, 'torch') and torch.typename(args[1])) and args[1] or nil
   local uses = false
   for _, d in ipairs(defs) do if named and named[d.arg] ~= nil then uses = true end end
   if not uses and named and #defs > 0 and matches(named, defs[1].type) and defs[1].type ~= nil then named = nil end
   local byName, values = {}, {}
   for i, d in ipairs(defs) do
      local v
      if named then v = named[d.arg] else v = args[i] end
      if v == nil then v = d.default end
      if v == nil and d.defaultf then v = d.defaultf() end
      if v == nil and d.req then error(xlua.usage(name, description, nil, ...) .. '\nmissing argument ' .. d.arg, 2) end
      if v ~= nil and not matches(v, d.type) then
         error(xlua.usage(name, description, nil, ...) .. '\nwrong type of argument ' .. d.arg .. ': ' .. type(v), 2)
      end
      byName[d.arg], values[i] = v, v
   end
   return byName, unpack(values, 1, #defs)
end

--- As unpack, storing the values in an object.
function xlua.unpack_class(object, args, name, description, ...)
   for k, v in pairs((xlua.unpack(args, name, description, ...))) do object[k] = v end
end

function xlua.require(name, message)
   local ok, m = pcall(require, name)
   if ok then return m end
   if message then print(message) end
end

function xlua.installed(name)
   return package.loaded[name] ~= nil or package.searchpath and package.searchpath(name, package.path) ~= nil
end

function xlua.error(message, ...)
   error(select('#', ...) > 0 and xlua.usage(message, ...) or message, 2)
end

function xlua.trycatch(try, catch)
   local ok, err = pcall(try)
   if not ok and catch then catch(err) end
end

function xlua.envparams()
   return {}
end

function xlua.who()
   for k, v in pairs(_G) do print(k, type(v)) end
end

function xlua.clear() for k in pairs(package.loaded) do if type(k) == 'string' and k:find('^user%.') then package.loaded[k] = nil end end end
xlua.clearall = xlua.clear

--- Table of times by name: start, lap.
local Profiler = torch and torch.class and torch.class('xlua.Profiler')
if Profiler then
   function Profiler:__init() self.timers = {} end
   function Profiler:start(name) self.timers[name] = self.timers[name] or {total = 0, laps = 0} self.timers[name].from = sys.clock() end
   function Profiler:lap(name)
      local t = self.timers[name]
      if t and t.from then
         t.total, t.laps = t.total + sys.clock() - t.from, t.laps + 1
         t.from = nil
      end
      return t and t.total
   end
   function Profiler:printAll()
      for name, t in pairs(self.timers) do print(('%s: %.6f s in %d laps'):format(name, t.total, t.laps)) end
   end
end

xlua.OptionParser = require 'xlua.OptionParser'

-- Short names, and what the package adds to strings and tables.
for short, name in pairs {xprint = 'print', xrequire = 'require', xerror = 'error'} do rawset(_G, short, xlua[name]) end
string.gfind = string.gfind or string.gmatch -- luacheck: ignore 122 143

--- Value of a Lua expression given as text: ('math.pi'):tosymbol().
function string.tosymbol(text) -- luacheck: ignore 142
   local f, why = loadstring('return ' .. text)
   if not f then error('[tosymbol] ' .. why, 2) end
   local value = f()
   if value == nil then error('[tosymbol] symbol; got ' .. text .. ', need one that is defined', 2) end
   return value
end

--- The array part without doubles; hash(v) says what counts as equal.
function table.prune(t, hash) -- luacheck: ignore 142
   local seen, out = {}, {}
   for _, v in ipairs(t) do
      local key = hash and hash(v) or v
      if not seen[key] then out[#out + 1], seen[key] = v, true end
   end
   return out
end

--- The list without `length` elements from `start` on, and these elements.
function table.splice(t, start, length) -- luacheck: ignore 142
   start, length = start or 1, length or 1
   local rest, cut = {}, {}
   for i, v in ipairs(t) do
      local side = (i < start or i >= start + length) and rest or cut
      side[#side + 1] = v
   end
   return rest, cut
end

return xlua
