-- The examples' shared parts: IDX files and JSON text.
package.path = 'examples/?.lua;' .. package.path
local digits, json = require 'digits', require 'json'

local function file(bytes)
   local path = os.tmpname()
   local f = assert(io.open(path, 'wb'))
   f:write(bytes)
   f:close()
   return path
end

describe('digits', function()
   it('reads the digits with labels from 1 to 10 and grey levels up to 1', function()
      local x, y = digits.load('examples/data', 'test')
      assert.same({ 1000, 1, 28, 28 }, x:size():totable())
      assert.equal(1000, y:size(1))
      assert.equal(1, y:min())
      assert.equal(10, y:max())
      assert.equal(0, x:min())
      assert.equal(1, x:max())
   end)

   it('reads a plain IDX file', function()
      local path = file '\0\0\8\2\0\0\0\2\0\0\0\3\1\2\3\4\5\6'
      local t = digits.idx(path)
      os.remove(path)
      assert.same({ 2, 3 }, t:size():totable())
      assert.equal(6, t[2][3])
   end)

   it('names what is wrong with a file', function()
      local short, other = file '\0\0\8\1\0\0\0\9\1', file 'no digits'
      assert.has_error(function() digits.idx(short) end)
      assert.has_error(function() digits.idx(other) end)
      os.remove(short)
      os.remove(other)
      local ok, err = pcall(digits.idx, 'no-such-file')
      assert.is_false(ok)
      assert.truthy(err:find('no such file; got no-such-file', 1, true))
   end)
end)

describe('json', function()
   it('writes sorted keys, escapes, empty arrays and numbers that are none', function()
      assert.equal('{"a": [1, 2.5], "b": "x\\"\\u000a", "c": [], "d": null, "e": true}',
         json.encode { b = 'x"\n', a = { 1, 2.5 }, c = json.array {}, d = 0 / 0, e = true })
   end)
end)
