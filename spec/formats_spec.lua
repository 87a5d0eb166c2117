-- Formats of others: NumPy, safetensors, PyTorch. The files in spec/data/formats were written by NumPy 2.4 and PyTorch 2.13.
local folder = 'spec/data/formats/'
local kinds = {'Byte', 'Char', 'Short', 'Int', 'Long', 'Half', 'Float', 'Double'}

local function raises(pattern, f, ...)
   local ok, err = pcall(f, ...)
   assert.is_false(ok)
   assert.is_truthy(tostring(err):find(pattern), tostring(err))
end

local function temporary(ending)
   local name = os.tmpname()
   os.remove(name)
   return name .. ending
end

local function bytesOf(name)
   local f = assert(io.open(name, 'rb'))
   local s = f:read('*a')
   f:close()
   return s
end

local function withBytes(s, ending, f)
   local name = temporary(ending or '')
   local file = assert(io.open(name, 'wb'))
   file:write(s)
   file:close()
   local ok, err = pcall(f, name)
   os.remove(name)
   if not ok then error(err, 0) end
end

local function roundTrip(x, ending, form)
   local name = temporary(ending)
   torch.save(name, x, form)
   local y = torch.load(name)
   os.remove(name)
   return y
end

local function same(a, b)
   assert.equal(a:type(), b:type())
   assert.same(a:size():totable(), b:size():totable())
   if a:nElement() > 0 then assert.equal(0, (a:double() - b:double()):abs():max()) end
end

describe('npy', function()
   it('keeps every type, layout and size', function()
      for _, kind in ipairs(kinds) do
         local make = torch[kind .. 'Tensor']
         local x = torch.range(1, 24):resize(2, 3, 4):type('torch.' .. kind .. 'Tensor')
         same(x, roundTrip(x, '.npy'))
         same(x[2]:t(), roundTrip(x[2]:t(), '.npy'))
         same(make(0, 3), roundTrip(make(0, 3), '.npy'))
         same(make{7}, roundTrip(make{7}, '.npy'))
      end
      same(torch.FloatTensor{1, 2}, roundTrip(torch.FloatTensor{1, 2}, '', 'npy'))
   end)

   it('reads big-endian arrays in Fortran order', function()
      local x = torch.load(folder .. 'fortran.npy')
      same(torch.range(0, 23):resize(2, 3, 4):short(), x)
      assert.is_false(x:isContiguous())
   end)

   it('widens unsigned types', function() same(torch.IntTensor{65535, 1}, torch.load(folder .. 'unsigned.npy')) end)

   it('begins elements at a multiple of 64 bytes', function()
      local name = temporary '.npy'
      torch.save(name, torch.DoubleTensor{1, 2})
      local s = bytesOf(name)
      os.remove(name)
      assert.equal(0, (#s - 16) % 64)
      assert.equal('\147NUMPY\1\0', s:sub(1, 8))
   end)

   it('refuses what is no array', function()
      raises('got a number, need a tensor', torch.save, temporary '.npy', 3)
      raises('need a CPU tensor of a type that NumPy has', torch.save, temporary '.npy', torch.BFloat16Tensor(2))
      local good = bytesOf(folder .. 'fortran.npy')
      for n = 0, #good - 1, 7 do
         withBytes(good:sub(1, n), '.npy', function(name) assert.is_false(pcall(torch.load, name, 'npy')) end)
      end
      withBytes(good:gsub('%(2, 3, 4%)', '(2, 3, 9)'), nil, function(name) raises('array of 54 elements; got 48 bytes, need 108', torch.load, name) end)
      withBytes(good:gsub('>i2', '|O8'), nil, function(name) raises('got O8, need one of', torch.load, name) end)
   end)
end)

describe('npz', function()
   it('keeps tables of tensors by name; lists get NumPy\'s names', function()
      local y = roundTrip({w = torch.randn(2, 3), torch.FloatTensor{1}, torch.LongTensor{5, 6}, empty = torch.DoubleTensor(0)}, '.npz')
      assert.same({2, 3}, y.w:size():totable())
      same(torch.FloatTensor{1}, y.arr_0)
      same(torch.LongTensor{5, 6}, y.arr_1)
      assert.equal(0, y.empty:nElement())
   end)

   it('reads deflated members', function()
      local y = torch.load(folder .. 'deflated.npz')
      same(torch.range(0, 99):long(), y.arr_0)
      same(torch.FloatTensor(3, 2):zero(), y.b)
   end)

   it('refuses broken archives', function()
      local good = bytesOf(folder .. 'deflated.npz')
      for n = 10, #good - 1, 23 do
         withBytes(good:sub(1, n), nil, function(name) assert.is_false(pcall(torch.load, name, 'npz')) end)
      end
      for i = 1, #good, 5 do -- a byte changed: an error or an array, never more
         withBytes(good:sub(1, i - 1) .. string.char((good:byte(i) + 129) % 256) .. good:sub(i + 1), nil, function(name) pcall(torch.load, name, 'npz') end)
      end
      raises('got a number at x, need a tensor', torch.save, temporary '.npz', {x = 1})
   end)
end)

describe('safetensors', function()
   it('keeps tensors of every type by name, and metadata', function()
      local x = {__metadata__ = {format = 'pt'}, b = torch.BFloat16Tensor{3, -4}, empty = torch.FloatTensor(0, 2)}
      for _, kind in ipairs(kinds) do x[kind] = torch.range(1, 6):resize(2, 3):type('torch.' .. kind .. 'Tensor'):t() end
      local y = roundTrip(x, '.safetensors')
      assert.same({format = 'pt'}, y.__metadata__)
      for name, t in pairs(x) do
         if name ~= '__metadata__' then same(t, y[name]) end
      end
   end)

   local function file(head, data) return string.char(#head, 0, 0, 0, 0, 0, 0, 0) .. head .. data end

   it('reads the published layout', function()
      withBytes(file('{"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}', '\0\0\128\63\0\0\0\64'), nil, function(name)
         same(torch.FloatTensor{{1, 2}}, torch.load(name).w)
      end)
   end)

   it('checks the header before memory is taken', function()
      local data = ('\0'):rep(8)
      for head, want in pairs {
         ['{"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,9]}}'] = 'need 8',
         ['{"w":{"dtype":"F32","shape":[1,3],"data_offsets":[0,12]}}'] = 'of 8, need 12',
         ['{"w":{"dtype":"F32","shape":[1,-2],"data_offsets":[0,8]}}'] = 'size %-2',
         ['{"w":{"dtype":"F8","shape":[8],"data_offsets":[0,8]}}'] = 'type F8',
         ['{"w":{"dtype":"F32"}}'] = 'need both',
         ['{"w":3}'] = 'got type false',
         ['{"w'] = 'need JSON',
      } do
         withBytes(file(head, data), nil, function(name) raises(want, torch.load, name, 'safetensors') end)
      end
      raises('need CPU tensors by name', torch.save, temporary '.safetensors', {torch.zeros(1)})
   end)
end)

describe('PyTorch\'s files', function()
   it('give dictionaries of tensors, numbers, strings and lists', function()
      local c = torch.load(folder .. 'checkpoint.pt')
      assert.equal(3, c.epoch)
      assert.equal(0.1, c.lr)
      assert.is_nil(c.none)
      assert.same({1, 2, {3, 4}}, c.list)
      assert.equal(2^40, c.big)
      assert.equal(-7, c.neg)
      same(torch.FloatTensor{{0, 3}, {1, 4}, {2, 5}}, c.t)
      same(torch.FloatTensor{3, 4, 5}, c.v)
      c.v:fill(9)
      assert.equal(9, c.t[1][2], 'views share their storage')
      same(torch.BFloat16Tensor{1.5, -2}, c.bf)
      same(torch.ByteTensor{1, 0}, c.mask)
      same(torch.LongTensor{5}, c.scalar)
      same(torch.FloatTensor{1, 1}, c.p)
      same(torch.FloatTensor{1, 1}, c.state.running_var)
   end)

   it('run no code and refuse other objects', function() raises('torch.nn.modules.linear.Linear; got an object', torch.load, folder .. 'module.pt') end)

   it('are refused when broken', function()
      local good = bytesOf(folder .. 'checkpoint.pt')
      local pickle = require 'torch.pickle'
      for i = 1, #good, 11 do
         withBytes(good:sub(1, i - 1) .. string.char((good:byte(i) + 77) % 256) .. good:sub(i + 1), nil, function(name) pcall(torch.load, name, 'pytorch') end)
      end
      for _, s in ipairs {'', 'R.', '(', 'h\1.', '\140\9ab', 'cos\nsystem\n(U\2lstR.', 'X\255\255\255\255', '}s.', '\255'} do
         assert.is_false(pcall(pickle.decode, s, error))
      end
   end)

   it('are not written', function() raises('got pytorch, need', torch.save, temporary '', {}, 'pytorch') end)
end)

describe('names of forms', function()
   it('are checked', function()
      raises("got csv, need 'binary'", torch.load, folder .. 'fortran.npy', 'csv')
      raises("got csv, need 'binary'", torch.save, temporary '', 1, 'csv')
   end)
end)
