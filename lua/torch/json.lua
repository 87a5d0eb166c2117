-- JSON in Lua: what `require 'cjson'` gives where the rock lua-cjson is not installed (Lua value <-> text).
local json = {_NAME = 'cjson', _VERSION = 'relume'}

--- JSON's null: a value that is not nil, so that it can stand in a table.
json.null = newproxy(true)
getmetatable(json.null).__tostring = function() return 'null' end

local precision, deepest, sparse = 14, 1000, {convert = false, ratio = 2, safe = 10}

--- Digits of numbers that encode writes (1 to 17).
function json.encode_number_precision(n)
   if n then precision = n end
   return precision
end
function json.encode_max_depth(n)
   if n then deepest = n end
   return deepest
end
json.decode_max_depth = json.encode_max_depth

--- How tables with holes are written: as objects when `convert`, else an error; up to `safe` elements they are arrays with nulls.
function json.encode_sparse_array(convert, ratio, safe)
   if convert ~= nil then sparse = {convert = convert, ratio = ratio or sparse.ratio, safe = safe or sparse.safe} end
   return sparse.convert, sparse.ratio, sparse.safe
end
for _, name in ipairs {'encode_keep_buffer', 'encode_invalid_numbers', 'decode_invalid_numbers'} do json[name] = function(v) return v end end

local escapes = {['"'] = '\\"', ['\\'] = '\\\\', ['\b'] = '\\b', ['\f'] = '\\f', ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t', ['/'] = '\\/'}

local function quoted(s)
   return '"' .. s:gsub('[%c"\\/\127]', function(c) return escapes[c] or ('\\u%04x'):format(c:byte()) end) .. '"'
end

local function fail(what) error('[cjson] ' .. what, 0) end

-- Length when all keys are whole numbers from 1, else nil; an empty table is an object.
local function array_length(t)
   local most, count = 0, 0
   for k in pairs(t) do
      if type(k) ~= 'number' or k < 1 or k ~= math.floor(k) then return nil end
      most, count = math.max(most, k), count + 1
   end
   if count == 0 then return nil end
   if sparse.ratio > 0 and most > count * sparse.ratio and most > sparse.safe then
      if not sparse.convert then fail 'cannot serialise table: excessively sparse array' end
      return nil
   end
   return most
end

local encode

local function encode_table(t, out, depth)
   if depth > deepest then fail('nesting; got more than ' .. deepest .. ' levels, need fewer') end
   local n = array_length(t)
   if n then
      out[#out + 1] = '['
      for i = 1, n do
         if i > 1 then out[#out + 1] = ',' end
         encode(t[i], out, depth + 1)
      end
      out[#out + 1] = ']'
      return
   end
   out[#out + 1] = '{'
   local first = true
   for k, v in pairs(t) do
      if type(k) ~= 'string' and type(k) ~= 'number' then fail('key; got ' .. type(k) .. ', need a string or number') end
      out[#out + 1] = (first and '' or ',') .. quoted(tostring(k)) .. ':'
      encode(v, out, depth + 1)
      first = false
   end
   out[#out + 1] = '}'
end

function encode(v, out, depth)
   local kind = type(v)
   if v == nil or v == json.null then out[#out + 1] = 'null'
   elseif kind == 'boolean' then out[#out + 1] = tostring(v)
   elseif kind == 'string' then out[#out + 1] = quoted(v)
   elseif kind == 'number' then
      if v ~= v or v == math.huge or v == -math.huge then fail 'cannot serialise number: must not be NaN or infinite' end
      out[#out + 1] = ('%.' .. precision .. 'g'):format(v)
   elseif kind == 'table' then encode_table(v, out, depth)
   else fail('cannot serialise ' .. kind .. ': type not supported') end
end

--- encode(value) -> text.
function json.encode(v)
   local out = {}
   encode(v, out, 1)
   return table.concat(out)
end

-- Reading: each function takes the text and a position and returns a value and the position behind it. ---------------------------------

local function expected(s, at, what)
   local got = s:sub(at, at)
   fail(('Expected %s but found %s at character %d'):format(what, got == '' and 'T_END' or "'" .. got .. "'", at))
end

local function utf8(code)
   if code < 0x80 then return string.char(code) end
   if code < 0x800 then return string.char(0xc0 + math.floor(code / 64), 0x80 + code % 64) end
   if code < 0x10000 then return string.char(0xe0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64) end
   return string.char(0xf0 + math.floor(code / 262144), 0x80 + math.floor(code / 4096) % 64, 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

local plain = {b = '\b', f = '\f', n = '\n', r = '\r', t = '\t', ['"'] = '"', ['\\'] = '\\', ['/'] = '/'}

local function read_escape(s, at)
   local c = s:sub(at, at)
   if plain[c] then return plain[c], at + 1 end
   local hex = c == 'u' and s:match('^%x%x%x%x', at + 1)
   if not hex then expected(s, at, 'an escape') end
   local code = tonumber(hex, 16)
   at = at + 5
   local low = code >= 0xd800 and code < 0xdc00 and s:match('^\\u([dD][c-fC-F]%x%x)', at)
   if low then return utf8(0x10000 + (code - 0xd800) * 1024 + tonumber(low, 16) - 0xdc00), at + 6 end
   return utf8(code), at
end

local function read_string(s, at)
   local out = {}
   at = at + 1
   while true do
      local stop = s:find('[%c"\\]', at)
      local c = stop and s:sub(stop, stop)
      if c ~= '"' and c ~= '\\' then expected(s, stop or #s + 1, 'the end of a string') end
      out[#out + 1] = s:sub(at, stop - 1)
      if c == '"' then return table.concat(out), stop + 1 end
      out[#out + 1], at = read_escape(s, stop + 1)
   end
end

local read
local words = {t = {'true', true}, f = {'false', false}, n = {'null', json.null}}

local function skip(s, at) return s:find('[^ \t\r\n]', at) or #s + 1 end

-- Members between brackets, one(at) -> position behind it.
local function members(s, at, close, one)
   at = skip(s, at + 1)
   if s:sub(at, at) == close then return at + 1 end
   while true do
      at = skip(s, one(at))
      local c = s:sub(at, at)
      if c == close then return at + 1 end
      if c ~= ',' then expected(s, at, "',' or '" .. close .. "'") end
      at = skip(s, at + 1)
   end
end

function read(s, at, depth)
   if depth > deepest then fail('nesting; got more than ' .. deepest .. ' levels, need fewer') end
   at = skip(s, at)
   local c = s:sub(at, at)
   local t = {}
   if c == '"' then return read_string(s, at) end
   if c == '[' then
      local n = 0
      return t, members(s, at, ']', function(p)
         n = n + 1
         t[n], p = read(s, p, depth + 1)
         return p
      end)
   elseif c == '{' then
      return t, members(s, at, '}', function(p)
         if s:sub(p, p) ~= '"' then expected(s, p, 'a key') end
         local key
         key, p = read_string(s, p)
         p = skip(s, p)
         if s:sub(p, p) ~= ':' then expected(s, p, 'a colon') end
         t[key], p = read(s, p + 1, depth + 1)
         return p
      end)
   end
   local word = words[c]
   if word and s:sub(at, at + #word[1] - 1) == word[1] then return word[2], at + #word[1] end
   local text = s:match('^-?%d+%.?%d*[eE]?[+-]?%d*', at)
   local number = text and tonumber(text)
   if not number then expected(s, at, 'a value') end
   return number, at + #text
end

--- decode(text) -> value; null becomes cjson.null.
function json.decode(s)
   if type(s) ~= 'string' then error('[cjson] text; got ' .. type(s) .. ', need a string', 2) end
   local v, at = read(s, 1, 1)
   at = skip(s, at)
   if at <= #s then expected(s, at, 'the end') end
   return v
end

--- Another instance; settings are shared here.
function json.new() return json end

return json
