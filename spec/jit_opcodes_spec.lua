-- Bytecode, whole: every instruction of this LuaJIT is evaluated, or is one that no dump holds; what a later LuaJIT adds breaks the graph.

local vmdef = require 'jit.vmdef'
local bytecode = require 'relume.jit.bytecode'
local compile = require 'relume.jit.compile'
local eval = require 'relume.jit.eval'
local live = require 'relume.jit.live'

-- Runs f with opcode number n under another name.
local function renamed(old, new, f)
   for n, name in pairs(bytecode.names) do
      if name == old then
         bytecode.names[n] = new
         local r = {pcall(f)}
         bytecode.names[n] = old
         return assert(unpack(r))
      end
   end
   error('no opcode ' .. old)
end

describe('bytecode instructions', function()
   local names = {}
   for i = 0, #vmdef.bcnames / 6 - 1 do names[i] = vmdef.bcnames:sub(i * 6 + 1, i * 6 + 6):gsub('%s+$', '') end

   for _, op in pairs(names) do
      it(op .. ' has a handler, or no dump holds it', function()
         if bytecode.never[op] then
            assert.is_nil(eval.handlers[op])
         else
            assert.equal('function', type(eval.handlers[op]))
            local p = {kgc = {[0] = {kind = 'proto', proto = {nuv = 0, uv = {}}}}, fr2 = 1}
            local reads = live.effects(p, {op = op, a = 3, b = 1, c = 2, d = 0, target = 1})
            assert.equal('table', type(reads), 'what it reads is not known')
         end
      end)
   end

   it('are met in the dumps of this library only as evaluated', function()
      local seen = {}
      local function walk(p)
         for _, i in ipairs(p.code) do seen[i.op] = true end
         for _, child in ipairs(p.children) do walk(child) end
      end
      for _, file in ipairs {'jit/eval.lua', 'jit/builtin.lua', 'jit/emit.lua', 'jit/bytecode.lua', 'lua/torch/init.lua'} do
         walk(bytecode.of(assert(loadfile(file))))
      end
      for op in pairs(seen) do assert.equal('function', type(eval.handlers[op]), op) end
   end)

   it('of another name break the graph, and the function runs eagerly', function()
      local c, f
      renamed('MULVN', 'MULXX', function()
         f = loadstring 'return function(x, k) local y = x + 1 return y * 2, k * 3 end'()
         c = torch.compile(f)
         compile.warnings = false
         local y, k = c(torch.ones(2), 4)
         compile.warnings = true
         assert.equal(4, y[1])
         assert.equal(12, k)
         return true
      end)
      local s = compile.states[c]
      assert.equal('opcode', s.breaks[1].id)
      assert.truthy(s.breaks[1].sentence:find('MULXX', 1, true))
      assert.equal(1, torch.compiler.stats(c).eager)
   end)
end)
