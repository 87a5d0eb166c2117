-- Fuzzer of files that nobody vouches for: .t7 (binary, ascii), .npy, .npz, safetensors, PyTorch's. Good files are damaged, then loaded with
-- {trusted = false}; the result is a value, of which every element is read, or an error with text. A crash ends the process: run it on a build
-- with AddressSanitizer. From the root of the built tree:
--
--    luajit spec/fuzz/files.lua [--seconds s] [--count n] [--seed s] [--only k]
--
-- The damaged file k of a seed is the same everywhere; `--only k` makes and loads that one alone. The number of the file under test lies beside
-- it (its name is printed), so that it can be found after a crash.
-- As a module: require 'fuzz.files'.fuzz(count, seed) -> nil or the text of the first failure.

local main = arg and arg[0] and arg[0]:find 'fuzz/files%.lua$'
local root = main and (arg[0]:match '^(.*)spec/' or '') or ''
if main then dofile(root .. 'examples/paths.lua') end
require 'torch'
require 'nn'

local function bytesOf(name)
   local f = assert(io.open(name, 'rb'))
   local s = f:read '*a'
   f:close()
   return s
end

local function writeBytes(name, s)
   local f = assert(io.open(name, 'wb'))
   f:write(s)
   f:close()
end

-- Good files -----------------------------------------------------------------------------------------------------------------------

local function tensors()
   local x = torch.range(1, 12):resize(3, 4)
   local t = {a = x, b = x:t(), c = x:narrow(2, 2, 2), 'text', 2.5, true, {x:storage()}}
   for _, kind in ipairs {'Byte', 'Char', 'Short', 'Int', 'Long', 'Half', 'Float'} do t[kind] = torch[kind .. 'Tensor'](2, 3):fill(3) end
   t.self = t
   return t
end

local function network() return nn.Sequential():add(nn.Linear(3, 2)):add(nn.SpatialConvolution(1, 2, 2, 2)):add(nn.Tanh()) end

local function closure()
   local n = 1
   return {f = function() n = n + 1 return n end}
end

local function saved(object, form)
   local name = os.tmpname()
   torch.save(name, object, form)
   local s = bytesOf(name)
   os.remove(name)
   return s
end

local function seeds()
   local list = {}
   for _, form in ipairs {'binary', 'ascii'} do
      for _, make in ipairs {tensors, network, closure} do table.insert(list, {form = form, saved(make(), form)}) end
   end
   local x = torch.range(1, 6):resize(2, 3)
   table.insert(list, {saved(x, 'npy')})
   table.insert(list, {saved({x = x, y = x:float()}, 'npz')})
   table.insert(list, {saved({x = x, y = x:float()}, 'safetensors')})
   for _, name in ipairs {'checkpoint.pt', 'module.pt', 'deflated.npz', 'fortran.npy', 'unsigned.npy'} do
      table.insert(list, {bytesOf(root .. 'spec/data/formats/' .. name)})
   end
   return list
end

-- Damage ---------------------------------------------------------------------------------------------------------------------------

local Random = {}
Random.__index = Random

-- Lehmer's generator, as the fuzzer of capture's.
function Random:pick(n)
   self.state = self.state * 48271 % 2147483647
   return self.state % n + 1
end

local words = {'\255\255\255\255', '\0\0\0\128', '\255\255\255\127', '\0\0\0\0', '\1\0\0\0', '\255\255\255\255\255\255\255\255',
   '\0\0\0\0\0\0\0\128', '\255\255\255\255\255\255\255\127', '\0\0\0\0\1\0\0\0', '\0\0\0\0\0\0\16\0'}
local numbers = {'0', '-1', '1', '2147483648', '9223372036854775807', '-9223372036854775808', '1e308', 'nan', '', '99999999999999999999'}
local damage = {}

local function put(s, at, bytes) return s:sub(1, at - 1) .. bytes .. s:sub(at + #bytes) end

function damage.flip(s, r) return put(s, r:pick(#s), string.char(r:pick(256) - 1)) end
function damage.word(s, r) return put(s, r:pick(#s), words[r:pick(#words)]) end
function damage.small(s, r) return put(s, r:pick(#s), string.char(r:pick(9) - 1) .. '\0\0\0') end
function damage.cut(s, r) return s:sub(1, r:pick(#s) - 1) end
function damage.without(s, r)
   local at = r:pick(#s)
   return s:sub(1, at - 1) .. s:sub(at + r:pick(16))
end
function damage.twice(s, r)
   local at, n = r:pick(#s), r:pick(64)
   return s:sub(1, at + n) .. s:sub(at)
end
function damage.moved(s, r) return put(s, r:pick(#s), s:sub(r:pick(#s)):sub(1, r:pick(32))) end
function damage.number(s, r)
   local from, to = s:find('%d+', r:pick(#s))
   if not from then return damage.flip(s, r) end
   return s:sub(1, from - 1) .. numbers[r:pick(#numbers)] .. s:sub(to + 1)
end

local names = {}
for name in pairs(damage) do names[#names + 1] = name end
table.sort(names)

local list

-- Damaged file k of a seed: bytes and the form to load it with (nil: by its first bytes).
local function made(seed, k)
   list = list or seeds()
   local r = setmetatable({state = (seed * 1000003 + k * 7919) % 2147483646 + 1}, Random)
   for _ = 1, 4 do r:pick(2) end
   local good = list[r:pick(#list)]
   local s = good[1]
   for _ = 1, r:pick(3) do
      if #s > 0 then s = damage[names[r:pick(#names)]](s, r) end
   end
   return s, good.form
end

-- Loading --------------------------------------------------------------------------------------------------------------------------

-- Reads every element of what came out; a view past its storage shows here.
local function touch(v, seen)
   if type(v) ~= 'table' and type(v) ~= 'userdata' or seen[v] then return end
   seen[v] = true
   if torch.isTensor(v) then
      if v:nElement() < 1e6 then v:clone():double():sum() end
      return tostring(v:size())
   end
   if torch.isStorage(v) then return v:size() > 0 and v[1] and v[v:size()] end
   if type(v) == 'table' then
      for k, e in next, v do
         touch(k, seen)
         touch(e, seen)
      end
   end
end

local function try(seed, k, name)
   local s, form = made(seed, k)
   writeBytes(name, s)
   local ok, value = pcall(torch.load, name, {format = form, trusted = false})
   if ok then ok, value = pcall(touch, value, {}) end
   if not ok and (type(value) ~= 'string' or value == '') then return ('file %d of seed %d: error %s'):format(k, seed, tostring(value)) end
   -- An error of the loader's own code, not of a class that is read, is a case that was not thought of.
   if not ok and not value:find 'its class does not read' and (value:find 'attempt to' or value:find 'bad argument' or value:find 'stack overflow') then
      return ('file %d of seed %d: %s'):format(k, seed, value)
   end
end

--- Loads damaged files first + 1 .. count, until the time is over. Returns nil, or the text of the first failure; then how many were loaded.
local function fuzz(count, seed, first, seconds, noted)
   local name, began, failure = os.tmpname(), os.time(), nil
   local k = first or 0
   while not failure and k < count and not (seconds and os.time() - began >= seconds) do
      k = k + 1
      if noted then writeBytes(noted, tostring(k)) end
      failure = try(seed, k, name)
      if k % 256 == 0 then collectgarbage() end
   end
   os.remove(name)
   return failure, k
end

if main then
   local options = {seed = 1}
   for i = 1, #arg, 2 do options[arg[i]:match '^%-%-(%a+)$' or error('unknown option ' .. arg[i])] = tonumber(arg[i + 1]) end
   local noted = os.tmpname()
   print('number of the file under test: ' .. noted)
   local first = options.only and options.only - 1
   local text, count = fuzz(options.only or options.count or (options.seconds and math.huge) or 10000, options.seed, first, options.seconds, noted)
   os.remove(noted)
   print(text or count .. ' files clean')
   os.exit(text and 1 or 0)
end

return {fuzz = fuzz}
