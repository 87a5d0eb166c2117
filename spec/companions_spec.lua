-- Companions that programs require beside torch and nn: mnist, csvigo, dok.
require 'helper'

local function file(text)
   local path = os.tmpname()
   local f = assert(io.open(path, 'w'))
   f:write(text)
   f:close()
   return path
end

describe('mnist', function()
   local mnist = require 'mnist'

   it('gives the shipped digits', function()
      local set = mnist.testdataset()
      assert.same({1000, 28, 28}, set.data:size():totable())
      assert.equal('torch.ByteTensor', set.data:type())
      assert.equal(1000, set.size)
      assert.equal(0, set.label:min())
      assert.equal(9, set.label:max())
      assert.equal(9000, mnist.traindataset().size)
      local one = set[3]
      assert.is_true(torch.equal(set.data[3], one.x))
      assert.equal(set.label[3], one.y)
      assert.is_nil(set.other)
      assert.has_error(function() return set[1001] end)
   end)

   it('reads the whole set from a folder, and says what is missing', function()
      local folder = os.tmpname()
      os.remove(folder)
      os.execute('mkdir ' .. folder)
      local ok, err = pcall(mnist.testdataset, folder)
      assert.is_false(ok)
      assert.truthy(err:find('no file t10k-images-idx3-ubyte; got the folder ' .. folder, 1, true))
      for name, text in pairs {['t10k-images-idx3-ubyte'] = '\0\0\8\3\0\0\0\2\0\0\0\1\0\0\0\2\1\2\3\4', ['t10k-labels-idx1-ubyte'] = '\0\0\8\1\0\0\0\2\7\9'} do
         os.rename(file(text), folder .. '/' .. name)
      end
      local set = mnist.testdataset(folder)
      os.execute('rm -r ' .. folder)
      assert.same({{{1, 2}}, {{3, 4}}}, set.data:totable())
      assert.same({7, 9}, set.label:totable())
   end)
end)

describe('csvigo', function()
   local csvigo = require 'csvigo'
   local text = 'name,age\n"Doe, ""J""",3\r\nx,\n'

   it('reads rows, columns, and rows when they are asked for', function()
      local path = file(text)
      assert.same({{'name', 'age'}, {'Doe, "J"', '3'}, {'x', ''}}, csvigo.load {path = path, mode = 'raw', verbose = false})
      assert.same({name = {'Doe, "J"', 'x'}, age = {'3', ''}}, csvigo.load {path = path, verbose = false})
      assert.same({'name', 'age'}, (csvigo.load {path = path, verbose = false, column_order = true}))
      assert.same({var_1 = {'name', 'Doe, "J"', 'x'}, var_2 = {'age', '3', ''}}, csvigo.load {path = path, verbose = false, header = false})
      local large = csvigo.load {path = path, mode = 'large', verbose = false}
      assert.equal(3, #large)
      assert.same({'x', ''}, large[3])
      assert.has_error(function() return large[4] end)
      os.remove(path)
      path = file '1 2   3\n'
      assert.same({{'1', '2', '3'}}, csvigo.load {path = path, separator = ' ', mode = 'raw', verbose = false})
      os.remove(path)
   end)

   it('selects rows by values', function()
      local path = file 'a,b\n1,x\n2,x\n1,y\n'
      local query = csvigo.load {path = path, mode = 'query', verbose = false}
      os.remove(path)
      assert.same({a = {'1'}, b = {'y'}}, query('inter', {a = 1, b = 'y'}))
      assert.same({a = {'2', '1'}, b = {'x', 'y'}}, query('union', {a = {2}, b = 'y'}))
      local vars = query 'vars'
      table.sort(vars)
      assert.same({'a', 'b'}, vars)
      assert.has_error(function() query('inter', {c = 1}) end)
   end)

   it('writes what it reads', function()
      local path = os.tmpname()
      csvigo.save {path = path, data = {{'a', 'b,c'}, {1, 'say "x"'}}, verbose = false}
      assert.same({{'a', 'b,c'}, {'1', 'say "x"'}}, csvigo.load {path = path, mode = 'raw', verbose = false})
      csvigo.save {path = path, data = {a = {1, 0 / 0}, b = {3, 4}}, column_order = {'b', 'a'}, nan_as_missing = true, verbose = false}
      assert.same({{'b', 'a'}, {'3', '1'}, {'4', ''}}, csvigo.load {path = path, mode = 'raw', verbose = false})
      os.remove(path)
      assert.has_error(function() csvigo.load {path = '/nonexistent/x.csv', verbose = false} end)
   end)
end)

describe('dok', function()
   it('unpacks declared arguments', function()
      local dok = require 'dok'
      local args, a, b = dok.unpack({{a = 1}}, 'f', 'does', {arg = 'a', type = 'number', req = true}, {arg = 'b', type = 'string', default = 'x'})
      assert.equal(1, args.a)
      assert.equal(1, a)
      assert.equal('x', b)
      assert.has_error(function() dok.error('bad', 'f') end)
   end)
end)
