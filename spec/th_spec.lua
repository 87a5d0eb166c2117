-- th: scripts with arguments, statements, packages, the interpreter on plain lines, failures, completion.
require 'helper'

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- Output (with errors) and exit status of th with these arguments; `input` is what it reads.
local function th(arguments, input)
   local pipe = io.popen(('printf %%s %s | bin/th %s 2>&1; echo "status $?"'):format(quoted(input or ''), arguments))
   local text = pipe:read '*a'
   pipe:close()
   local out, status = text:match '^(.*)status (%d+)\n$'
   return out, tonumber(status)
end

local function script(text)
   local name = os.tmpname()
   local f = assert(io.open(name, 'w'))
   f:write(text)
   f:close()
   return name
end

describe('th', function()
   it('runs a script with its arguments and the globals that programs expect', function()
      local name = script [[
         print(#arg, arg[1], arg[2], arg[0] == debug.getinfo(1, 'S').source:sub(2), ...)
         print(torch.type(torch.Tensor()), type(paths), type(sys), type(xlua), type(include))
      ]]
      local out, status = th(name .. ' -lr 0.1')
      os.remove(name)
      assert.equal('2\t-lr\t0.1\ttrue\t-lr\t0.1\ntorch.DoubleTensor\ttable\ttable\ttable\tfunction\n', out)
      assert.equal(0, status)
   end)

   it('runs statements and requires packages', function()
      assert.equal('3\tnn.Linear(2 -> 1)\n', (th [[-l nn -e 'x = 3' -e 'print(x, nn.Linear(2, 1))']]))
   end)

   it('finds modules beside the program', function()
      local out = th [[-e 'print(package.path:find("./?.lua", 1, true) ~= nil, package.path:find("./?/init.lua", 1, true) ~= nil)']]
      assert.equal('true\ttrue\n', out)
   end)

   it('prints tables', function()
      assert.equal('{\n  1 : 5\n  a : "x"\n  t : DoubleTensor - size: 2x3\n}\tend\n', (th [[-e 'print({5, a = "x", t = torch.Tensor(2, 3)}, "end")']]))
   end)

   it('evaluates lines', function()
      local out, status = th('', 'x = torch.ones(2)\nx:sum()\n= 1, nil, "s"\nfor i = 1, 2 do\nprint(i)\nend\nerror("boo")\n_LAST\n')
      assert.equal('2\n1\nnil\ns\n1\n2\nboo\n1\n', out)
      assert.equal(0, status)
   end)

   it('enters the interpreter behind a script', function()
      local name = script 'y = 4'
      assert.equal('4\n', (th('-i ' .. name, 'y\n')))
      os.remove(name)
   end)

   it('says what failed, with the program\'s frames only, and ends with 1', function()
      local name = script 'local function inner() error("deep") end\ninner()\n'
      local out, status = th(name)
      os.remove(name)
      assert.equal(1, status)
      assert.truthy(out:find(':1: deep\nstack traceback:\n', 1, true))
      assert.is_nil(out:find('trepl', 1, true))
      out, status = th 'missing_script.lua'
      assert.equal(1, status)
      assert.truthy(out:find('cannot open missing_script.lua', 1, true))
      out, status = th '--nope'
      assert.equal(1, status)
      assert.truthy(out:find('unknown option --nope', 1, true))
      assert.equal(1, select(2, th [[-gg -e 'zz = 1']]))
   end)

   it('mends a parenthesis on the next line, in scripts and modules', function()
      local name = script 'local f = function(x) return x end\nlocal y = f -- a call\n\n(3)\nprint(y, debug.getinfo(1, "l").currentline)\n'
      assert.equal('3\t5\n', (th(name)))
      assert.equal('3\t5\n', (th(("-e 'dofile %q'"):format(name))))
      os.remove(name)
   end)
end)

describe('completion', function()
   it('knows globals, fields and methods', function()
      local complete = require 'trepl.complete'
      assert.same({ 'torch.rand', 'torch.randn', 'torch.random', 'torch.randperm' }, complete 'torch.rand')
      rawset(_G, 'completed', torch.ones(2))
      assert.same({ 'completed:narrow' }, complete 'completed:narr')
      rawset(_G, 'completed', { inner = { value = 1, f = print } })
      assert.same({ 'completed.inner.f', 'completed.inner.value' }, complete 'completed.inner.')
      assert.same({ 'completed.inner:f' }, complete 'completed.inner:')
      rawset(_G, 'completed', nil)
      assert.same({}, complete 'no.such.thing')
      assert.same({ 'return' }, complete 'retur')
   end)
end)
