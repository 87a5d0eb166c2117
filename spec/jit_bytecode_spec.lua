-- Bytecode: dumps parse to the instructions, constants and names of the source.

local bytecode = require 'relume.jit.bytecode'

describe('bytecode', function()
   it('decodes instructions, constants, templates and names', function()
      local up = 5
      local function f(x, ...)
         local t = {1, 'two', [3.5] = false, k = -7}
         local big, huge = 12345678901, 1e300
         return function() return x + up + big + huge, t end, ...
      end
      local p = bytecode.of(f)
      assert.equal(1, p.params)
      assert.is_true(p.vararg)
      assert.equal('x', bytecode.varname(p, 1, 0))
      assert.equal('up', p.uvnames[1])
      assert.equal(1, #p.children)
      local template
      for i = 0, #p.kgc do if type(p.kgc[i]) == 'table' and p.kgc[i].kind == 'table' then template = p.kgc[i] end end
      assert.equal('two', template.array[2])
      local hash = {}
      for _, pair in ipairs(template.hash) do hash[pair[1]] = pair[2] end
      assert.same({[3.5] = false, k = -7}, hash)
      local numbers = {}
      for i = 0, #p.kn do numbers[p.kn[i]] = true end
      assert.is_true(numbers[12345678901] and numbers[1e300])
      assert.truthy(bytecode.where(p, 1):find 'jit_bytecode_spec.lua:%d+')
      assert.truthy(bytecode.list(p):find 'FNEW')
   end)

   it('is not patched by the compiler', function()
      local function hot(n) local s = 0 for i = 1, n do s = s + i end return s end
      for _ = 1, 200 do hot(200) end
      for _, ins in ipairs(bytecode.of(hot).code) do assert.is_nil(ins.op:match '^J%u*L$' or ins.op:match '^I%u*L$' and ins.op ~= 'ITERL' or nil) end
   end)

   it('writes dumps that load', function()
      local function outer(a) return function(b) return a + b end end
      local f = loadstring(bytecode.dump(bytecode.of(outer).children[1]))
      debug.setupvalue(f, 1, 40)
      assert.equal(42, f(2))
      local whole = loadfile 'jit/eval.lua' or loadfile 'jit/value.lua'
      assert.equal(string.dump(whole), bytecode.dump(bytecode.of(whole)))
   end)

   it('identifies closures of one source', function()
      local function make() return function() end end
      assert.equal(bytecode.id(make()), bytecode.id(make()))
      assert.is_nil(bytecode.id(print))
      assert.is_false(pcall(bytecode.parse, 'no dump'))
   end)
end)
