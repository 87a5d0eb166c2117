-- Serialization: files of the original, round trips in both forms, sharing, functions, files that lie.
-- luacheck: globals relumespec
local data = 'spec/data/t7'
local forms = {binary = '.t7', ascii = '.ascii.t7'}

local function raises(pattern, f)
   local ok, err = pcall(f)
   assert.is_false(ok)
   assert.is_truthy(tostring(err):find(pattern), tostring(err))
end

local function roundtrip(object, form)
   return torch.deserialize(torch.serialize(object, form), form)
end

for form, suffix in pairs(forms) do
   describe('files of the original, ' .. form, function()
      it('tensors', function()
         local t = torch.load(data .. '/tensors' .. suffix, form)
         for name, x in pairs(t) do
            if name ~= 'Half' then
               assert.equal('torch.' .. name .. 'Tensor', x.plain:type())
               assert.same({{11, 12, 13}, {21, 22, 23}}, x.plain:totable())
               assert.same({{11, 21}, {12, 22}, {13, 23}}, x.transposed:totable())
               assert.same({{12, 13}, {22, 23}}, x.narrowed:totable())
               assert.equal(0, x.empty:dim())
               assert.same({2, 2, 2}, x.three:size():totable())
               x.storage[1] = 99
               assert.equal(99, x.plain[1][1])
               assert.equal(99, x.transposed[1][1])
            end
         end
         assert.same({{1, 2, 3}, {4, 5.5, -6.25}}, t.Half.plain:totable())
      end)
      it('table', function()
         local t = torch.load(data .. '/table' .. suffix, form)
         assert.equal(1, t.a)
         assert.equal('two', t.b)
         assert.is_true(t.c)
         assert.equal('yes', t.d[4].nested)
         assert.equal(t, t.self)
         t.shared1[2] = 8
         assert.equal(8, t.shared2[2])
         assert.equal(8, t.view[1])
         assert.is_truthy(t[1] ~= nil and t[2.5] ~= nil and t[true] ~= nil)
      end)
      it('closure', function()
         local t = torch.load(data .. '/closure' .. suffix, form)
         local value, name = t.f(1)
         assert.equal(43, value)
         assert.equal('v', name)
         local first = t.g()
         assert.equal(first + 1, t.g())
         raises('not trusted', function() torch.load(data .. '/closure' .. suffix, {format = form, trusted = false}) end)
      end)
      it('class', function()
         torch.class('relumecheck.Point')
         local t = torch.load(data .. '/class' .. suffix, form)
         assert.equal('relumecheck.Point', torch.typename(t.p))
         assert.equal(3, t.p.x)
         assert.equal(4, t.p.y)
      end)
      it('scalars', function()
         local t = torch.load(data .. '/scalars' .. suffix, form)
         assert.equal(2 ^ 53, t.big)
         assert.equal(0.1, t.frac)
         assert.equal(math.huge, t.inf)
         assert.equal(-math.huge, t.ninf)
         assert.equal('', t.s)
         assert.equal('with\nnewline\0and nul', t.s2)
         assert.is_false(t.b)
      end)
   end)

   describe('round trip, ' .. form, function()
      it('plain values', function()
         for _, v in ipairs {1, -0.5, 1e300, math.huge, 'text', '', 'nul\0\n', true, false} do assert.equal(v, roundtrip(v, form)) end
         assert.is_nil(roundtrip(nil, form))
         assert.same({1, {2, a = {}}, [2.5] = 'x', [true] = false}, roundtrip({1, {2, a = {}}, [2.5] = 'x', [true] = false}, form))
      end)
      it('tensors and storages of all types', function()
         for _, name in ipairs {'Byte', 'Char', 'Short', 'Int', 'Long', 'Half', 'BFloat16', 'Float', 'Double'} do
            local x = torch[name .. 'Tensor']{{1, 2, 3}, {4, 5, 6}}
            local y = roundtrip({x = x, t = x:t(), s = x:storage(), e = x.new()}, form)
            assert.equal(x:type(), y.x:type())
            assert.same(x:totable(), y.x:totable())
            assert.same(x:t():totable(), y.t:totable())
            y.s[1] = 9
            assert.equal(9, y.t[1][1])
            assert.equal(0, y.e:dim())
         end
         assert.equal(0.1, roundtrip(torch.Tensor{0.1}, form)[1])
         assert.equal(2 ^ 53, roundtrip(torch.LongTensor{2 ^ 53}, form)[1])
      end)
      it('sharing and cycles', function()
         local t = {}
         t.self, t.a = t, {1}
         t.b = t.a
         local u = roundtrip(t, form)
         assert.equal(u, u.self)
         assert.equal(u.a, u.b)
      end)
      it('objects, with read and write when they have them', function()
         local A = torch.class('relumespec.Saved')
         function A:__init() self.kept, self.n = 5, torch.Tensor{1} end
         local B = torch.class('relumespec.Custom', 'relumespec.Saved')
         function B:write(file) file:writeInt(self.kept * 2) end
         function B:read(file) self.kept = file:readInt() / 2 end
         local t = roundtrip({relumespec.Saved(), relumespec.Custom()}, form)
         assert.equal(5, t[1].kept)
         assert.equal(1, t[1].n[1])
         assert.equal(5, t[2].kept)
         assert.is_nil(t[2].n)
      end)
      it('functions with upvalues', function()
         local x, n = torch.Tensor{1, 2}, 10
         local f = roundtrip(function(a) return a + n + x:sum() end, form)
         assert.equal(14, f(1))
      end)
   end)
end

describe('loading', function()
   it('gives a stub for bytecode it cannot load', function()
      local s = torch.serialize(function() return 1 end)
      local at = s:find('\27LJ', 1, true)
      local f = torch.deserialize(s:sub(1, at - 1) .. '\27Lu' .. s:sub(at + 3))
      raises('function could not be loaded', f)
   end)

   it('refuses files that lie about sizes', function()
      local function damaged(change)
         local storage = torch.serializeToStorage(torch.FloatTensor{1, 2, 3})
         return torch.deserialize(change(storage:string()))
      end
      local function at(s, pattern, offset, bytes)
         local p = s:find(pattern, 1, true) + #pattern + offset
         return s:sub(1, p - 1) .. bytes .. s:sub(p + #bytes)
      end
      local huge = '\255\255\255\255\255\255\255\127'
      raises('%[load%]', function() damaged(function(s) return at(s, 'torch.FloatTensor', 4, huge) end) end)
      raises('%[load%]', function() damaged(function(s) return at(s, 'torch.FloatTensor', 12, huge) end) end)
      raises('outside its storage', function() damaged(function(s) return at(s, 'torch.FloatTensor', 20, '\9') end) end)
      raises('dimensions', function() damaged(function(s) return at(s, 'torch.FloatTensor', 0, '\127') end) end)
      raises('storage size', function() damaged(function(s) return at(s, 'torch.FloatStorage', 0, huge) end) end)
      raises('%[', function() damaged(function(s) return s:sub(1, #s - 4) end) end)
      raises('unknown class', function() damaged(function(s) return (s:gsub('torch.FloatTensor', 'torch.FloatTensoR')) end) end)
   end)

   it('names the class that does not read its contents', function()
      local s = torch.serialize(nn.Tanh(), 'ascii')
      local at = select(2, s:find 'nn%.Tanh\n')
      raises('%[load%] contents of nn.Tanh; got what its class does not read', function() torch.deserialize(s:sub(1, at) .. '0\n', 'ascii') end)
   end)

   it('takes tables nested deep, refuses those nested too deep', function()
      local function nested(n)
         local t = {torch.Tensor{n}}
         for _ = 1, n do t = {t, 'x'} end
         return t
      end
      for _, form in ipairs {'binary', 'ascii'} do
         local t, n = torch.deserialize(torch.serialize(nested(10000), form), form), 0
         while t[2] do t, n = t[1], n + 1 end
         assert.equal(10000, n)
         assert.equal(10000, t[1][1])
      end
      raises('%[save%] nesting; got more than 40000 levels', function() torch.serialize(nested(40001)) end)
      local level = '3\n%d\n1\n1\n1\n'
      local list = {}
      for i = 1, 40001 do list[i] = level:format(i) end
      raises('%[load%] nesting; got more than 40000 levels', function() torch.deserialize(table.concat(list), 'ascii') end)
   end)

   it('takes modules nested deep, whose class writes and reads itself', function()
      local m, n = nn.Sequential(), 0
      for _ = 1, 2000 do m = nn.Sequential():add(m) end
      m = torch.deserialize(torch.serialize(m))
      while m.modules[1] do m, n = m.modules[1], n + 1 end
      assert.equal(2000, n)
   end)

   it('gives a value or a clear error for damaged files of every form', function()
      local text = require 'fuzz.files'.fuzz(1500, 31)
      assert.is_nil(text, text)
   end)

   it('raises for missing files and unknown forms', function()
      raises('cannot open', function() torch.load('/no/such/file.t7') end)
      raises('need .binary.', function() torch.save(os.tmpname(), 1, 'xml') end)
   end)

   it('saves to disk', function()
      local name = os.tmpname()
      torch.save(name, {a = torch.range(1, 3)})
      assert.same({1, 2, 3}, torch.load(name).a:totable())
      torch.save(name, {1, 'b'}, 'ascii')
      assert.same({1, 'b'}, torch.load(name, 'ascii'))
      os.remove(name)
   end)
end)

describe('files', function()
   it('DiskFile reads and writes numbers and strings', function()
      local name = os.tmpname()
      local f = torch.DiskFile(name, 'w')
      f:writeInt(3)
      f:writeDouble(0.5)
      f:writeString('line\n')
      f:writeLong(torch.LongStorage{1, 2})
      f:close()
      f = torch.DiskFile(name, 'r')
      assert.equal(3, f:readInt())
      assert.equal(0.5, f:readDouble())
      assert.equal('line', f:readString('*l'))
      assert.same({1, 2}, f:readLong(2):totable())
      raises('no more data', function() f:readInt() end)
      f:quiet()
      f:readInt()
      assert.is_true(f:hasError())
      f:clearError()
      f:seek(1)
      assert.equal(1, f:position())
      f:close()
      raises('closed file', function() f:readInt() end)
      os.remove(name)
      raises('cannot open', function() torch.DiskFile('/no/such/file') end)
      assert.is_nil(torch.DiskFile('/no/such/file', 'r', true))
   end)

   it('MemoryFile and PipeFile', function()
      local f = torch.MemoryFile():binary()
      f:writeInt(258)
      f:writeObject({1, 2})
      assert.equal(4 + 4, f:storage():size() - (f:storage():size() - 8))
      f:seek(1)
      assert.equal(258, f:readInt())
      assert.same({1, 2}, f:readObject())
      f:close()
      f = torch.MemoryFile():binary()
      f:writeInt(5)
      f:storage():resize(0)
      f:seek(1)
      raises('no more data', function() f:readInt() end)
      local p = torch.PipeFile('echo 12')
      assert.equal(12, p:readInt())
      p:close()
   end)
end)
