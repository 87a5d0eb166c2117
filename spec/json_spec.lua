-- JSON in Lua: there and back, cjson's null, escapes, what is refused.
require 'helper'
local json = require 'torch.json'

describe('json', function()
   it('goes there and back', function()
      local value = { name = 'a "b"\n\\ / \t\1', list = { 1, 2.5, -3e10, true, false }, nested = { { x = { 1 } } }, empty = {} }
      assert.same(value, json.decode(json.encode(value)))
      assert.equal('[1,2,3]', json.encode { 1, 2, 3 })
      assert.equal('[1,null,3]', json.encode { 1, json.null, 3 })
      assert.equal('"x"', json.encode 'x')
      assert.equal('{}', json.encode {})
   end)

   it('reads', function()
      local t = json.decode ' { "a" : [ 1 , 2.5e1, null ], "u": "\\u00e9\\ud83d\\ude00", "t": true } '
      assert.equal(25, t.a[2])
      assert.equal(json.null, t.a[3])
      assert.equal('\195\169\240\159\152\128', t.u)
      assert.is_true(t.t)
   end)

   it('refuses what is no JSON', function()
      for _, text in ipairs { '', '{', '[1,]', '{"a" 1}', '"abc', 'tru', '[1] 2', '{1:2}', '"\\x"', ('['):rep(2000) } do
         local ok, why = pcall(json.decode, text)
         assert.is_false(ok)
         assert.truthy(tostring(why):find('[cjson]', 1, true))
      end
      assert.is_false(pcall(json.encode, { print }))
      assert.is_false(pcall(json.encode, 0 / 0))
      assert.is_false(pcall(json.encode, { [100] = 1 }))
      local loop = {}
      loop[1] = loop
      assert.is_false(pcall(json.encode, loop))
   end)

   it('stands in for cjson', function()
      local cjson = require 'cjson'
      assert.same({ 1, 2 }, cjson.decode(cjson.encode { 1, 2 }))
   end)
end)
