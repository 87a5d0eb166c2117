-- Classes: torch.class, parents, operators, typename and its kin, types of the core.
-- luacheck: globals relumespec
local function raises(pattern, f)
   local ok, err = pcall(f)
   assert.is_false(ok)
   assert.is_truthy(tostring(err):find(pattern), tostring(err))
end

describe('torch.class', function()
   local A = torch.class('relumespec.A')
   function A:__init(x) self.x = x end
   function A:get() return self.x end
   local B, parent = torch.class('relumespec.B', 'relumespec.A')
   function B:__init(x, y)
      parent.__init(self, x)
      self.y = y
   end

   it('makes objects that inherit', function()
      local b = relumespec.B(3, 4)
      assert.equal(3, b:get())
      assert.equal(4, b.y)
      assert.equal('relumespec.B', torch.typename(b))
      assert.equal('relumespec.B', torch.type(b))
      assert.is_true(torch.isTypeOf(b, 'relumespec.A'))
      assert.is_true(torch.isTypeOf(b, relumespec.A))
      assert.is_false(torch.isTypeOf(relumespec.A(1), 'relumespec.B'))
      assert.is_true(torch.isTypeOf(b, 'relumespec%..'))
      assert.equal(B, torch.getmetatable('relumespec.B'))
      assert.equal(A, getmetatable(B))
      assert.equal(relumespec.B, torch.getconstructortable('relumespec.B'))
      assert.equal('relumespec.B', torch.typename(torch.factory('relumespec.B')()))
      assert.equal(5, relumespec.B.new(5, 6):get())
   end)

   it('lets methods be added through the constructor table', function()
      function relumespec.A:twice() return self.x * 2 end
      assert.equal(6, relumespec.B(3):twice())
      assert.equal(A.get, relumespec.A.get)
   end)

   it('has operators under Torch7\'s names', function()
      function A:__add__(o) return self.x + (type(o) == 'table' and o.x or o) end
      function A:__call__(v) return self.x * v end
      function A:__tostring__() return 'A of ' .. self.x end
      function A:__len__() return 7 end
      local a = relumespec.A(2)
      assert.equal(4, a + a)
      assert.equal(5, a + 3)
      assert.equal(20, a(10))
      assert.equal('A of 2', tostring(a))
      assert.equal('A of 2', tostring(relumespec.B(2)))
      raises('no such operator', function() return a * a end)
   end)

   it('calls objects with as many arguments as are written', function()
      local class = torch.class('relumespec.B', {})
      function class:__call__(...) return select('#', ...) end
      local b = torch.factory 'relumespec.B'()
      assert.equal(0, b())
      assert.equal(1, b(nil))
      assert.equal(3, b(nil, 2, nil))
   end)

   it('honours __index__ and __newindex__', function()
      local C = torch.class('relumespec.C')
      function C:__index__(k)
         if k == 'magic' then return 42, true end
         return nil, false
      end
      function C:__newindex__(k, v)
         if k == 'hidden' then rawset(self, '_hidden', v) return true end
         return false
      end
      function C:plain() return 1 end
      local c = relumespec.C()
      assert.equal(42, c.magic)
      assert.equal(1, c:plain())
      c.hidden, c.open = 3, 4
      assert.is_nil(rawget(c, 'hidden'))
      assert.equal(3, c._hidden)
      assert.equal(4, c.open)
   end)

   it('goes into a module table when one is given', function()
      local m = {}
      torch.class('relumespec.M', m)
      assert.is_truthy(m.M)
      torch.class('relumespec.N', 'relumespec.A', m)
      assert.equal(1, m.N(1):get())
   end)

   it('may be defined twice, with the same parent', function()
      local again = torch.class('relumespec.B', 'relumespec.A')
      assert.equal(B, again)
      raises('another parent', function() torch.class('relumespec.B', 'relumespec.C') end)
      raises('unknown parent', function() torch.class('relumespec.X', 'relumespec.None') end)
      raises('type of the core', function() torch.class('torch.FloatTensor') end)
   end)

   it('setmetatable makes an object of a table', function()
      local t = torch.setmetatable({x = 8}, 'relumespec.A')
      assert.equal(8, t:get())
      raises('unknown type', function() torch.setmetatable({}, 'no.Such') end)
   end)
end)

describe('types of the core', function()
   it('have names, metatables, factories', function()
      assert.is_true(torch.isTensor(torch.FloatTensor()))
      assert.is_false(torch.isTensor(torch.FloatStorage()))
      assert.is_true(torch.isStorage(torch.FloatStorage()))
      assert.is_false(torch.isTensor({}))
      assert.is_nil(torch.typename({}))
      assert.equal('number', torch.type(1))
      assert.equal('userdata', type(torch.Tensor()))
      assert.equal('torch.FloatTensor', torch.typename(torch.factory('torch.FloatTensor')()))
      assert.equal('torch.FloatTensor', torch.FloatTensor.__typename)
   end)

   it('take new methods', function()
      torch.getmetatable('torch.ShortTensor').relumespec = function(self) return self:sum() + 1 end
      assert.equal(4, torch.ShortTensor{1, 2}:relumespec())
      function torch.ShortTensor:other() return 5 end
      assert.equal(5, torch.ShortTensor():other())
      assert.is_nil(torch.IntTensor().other)
      torch.ShortTensor.other, torch.ShortTensor.relumespec = nil, nil
   end)
end)
