-- Habits of programs of the time under `th`: Lua 5.2's library, files as modules, Penlight's globals, every class of nn.
require 'helper'

-- What th prints for a program's text.
local function th(text)
   local name = os.tmpname()
   local f = assert(io.open(name, 'w'))
   f:write(text)
   f:close()
   local pipe = io.popen('bin/th ' .. name .. ' 2>&1')
   local out = pipe:read '*a'
   pipe:close()
   os.remove(name)
   return out
end

describe('Lua 5.2 under th', function()
   it('close of a pipe and os.execute say how a command ended', function()
      assert.equal('hi\n\tnil\texit\t3\ntrue\texit\t0\nclosed file\n', th [[
         local f = io.popen 'echo hi; exit 3'
         print(f:read '*a', f:close())
         f = io.popen('cat > /dev/null # a comment', 'w')
         f:write 'x'
         print(io.close(f))
         print(io.type(f))]])
      assert.equal('nil\texit\t4\ntrue\texit\t0\nnil\tsignal\t9\ntrue\n', th [[
         print(os.execute 'exit 4')
         print(os.execute 'true')
         print(os.execute 'kill -9 $$')
         print(os.execute())]])
   end)

   it('pairs and ipairs ask the metatable', function()
      assert.equal('a\t1\nx\ty\n1\t5\n', th [[
         for k, v in pairs(setmetatable({}, {__pairs = function() return next, {a = 1}, nil end})) do print(k, v) end
         for k, v in pairs {x = 'y'} do print(k, v) end
         for k, v in ipairs {5} do print(k, v) end]])
   end)

   it('table.pack, table.unpack, load of a string, rawlen, bit32', function()
      assert.equal('3\t2\t7\t2\n', th "print(table.pack(1, nil, nil).n, select(2, table.unpack {1, 2}), load 'return 7'(), rawlen {1, 2})")
      assert.equal('4042322160\t268435455\t2147483648\t0\t4294967295\t15\t240\tfalse\t0\t4160749568\n', th [[
         local b = require 'bit32'
         print(b.band(0xffffffff, 0xf0f0f0f0), b.rshift(0xffffffff, 4), b.lshift(1, 31), b.lshift(1, -1), b.bnot(0), b.extract(0xff00, 8, 4),
            b.replace(0, 0xf, 4, 4), b.btest(1, 2), b.rshift(1, 40), b.arshift(0x80000000, 4))]])
   end)
end)

describe('programs under th', function()
   it('require files beside the calling file, by ./name and by name.lua', function()
      local folder = os.tmpname()
      os.remove(folder)
      os.execute('mkdir ' .. folder .. ' ' .. folder .. '/sub')
      local function write(name, text)
         local f = assert(io.open(folder .. '/' .. name, 'w'))
         f:write(text)
         f:close()
      end
      write('main.lua', "print(require './sub/one', require('./sub/one.lua'), require 'three.lua')\nprint((pcall(require, './nothing')))")
      write('sub/one.lua', "n = (n or 0) + 1\nreturn 'one' .. n .. require './two'")
      write('sub/two.lua', "return 'two'")
      write('three.lua', "return 'three'")
      local pipe = io.popen(('r=$PWD; cd %s && $r/bin/th main.lua 2>&1'):format(folder))
      local out = pipe:read '*a'
      pipe:close()
      os.execute('rm -r ' .. folder)
      assert.equal('one1two\tone2two\tthree\nfalse\n', out)
   end)

   it('find every class of nn in the table nn', function()
      assert.equal('true\ttrue\n', th "require 'nn'; local n = {} for k in pairs(nn) do n[k] = true end print(n.SoftMax, n.VolumetricConvolution)")
   end)

   it('find dok, colours, and Penlight where it is installed', function()
      assert.equal('table\t\27[1;31mx\27[0m\n', th "print(type(dok), require 'trepl.colorize'.Red 'x')")
      if pcall(require, 'pl.path') then assert.equal('a/b\n', th "print(path.join('a', 'b'))") end
   end)
end)

describe('#net', function()
   local function count(net, n)
      assert.equal(n, #net)
      assert.equal(n, net:size())
      assert.is_falsy(net[1])
   end

   it('is the number of modules after add, insert, remove, clone and loading', function()
      local net = nn.Sequential()
      count(net, 0)
      net:add(nn.Linear(2, 2)):add(nn.Tanh())
      count(net, 2)
      net:insert(nn.Identity(), 1)
      count(net, 3)
      net:remove()
      net:remove(1)
      count(net, 1)
      net:add(nn.Tanh())
      count(net:clone(), 2)
      count(torch.deserialize(torch.serialize(net)), 2)
      net:remove()
      net:remove()
      count(net, 0)
   end)

   it('leaves no trace in a file', function()
      local net = nn.Sequential():add(nn.Tanh())
      local file = torch.MemoryFile():binary()
      net:write(file)
      file:seek(1)
      local fields = file:readObject()
      assert.is_nil(fields[1])
      assert.equal(1, #fields.modules)
   end)
end)

describe('torch.CmdLine', function()
   local function command()
      local cmd = torch.CmdLine()
      cmd:argument('-model', 'a file')
      cmd:option('-rate', 0.5)
      cmd:option('-gpu', false)
      return cmd
   end

   it('names an argument without its dash and toggles switches', function()
      assert.same({model = 'm.t7', rate = 2, gpu = true}, command():parse {'m.t7', '-rate', '2', '-gpu'})
   end)

   it('names a run by its arguments and by what differs from the defaults', function()
      local cmd = command()
      assert.equal('run,model=m,gpu=t,rate=2', cmd:string('run', {model = 'm', rate = 2, gpu = true, unknown = 1}, {}))
      assert.equal('run,rate=0.5', cmd:string('run', {model = 'm', rate = 0.5, gpu = true}, {gpu = true, model = true, rate = false}))
      assert.equal('run', cmd:string('run', cmd:default(), {}))
   end)

   it('is a class to inherit from', function()
      local Own = torch.class('spec.OwnCmdLine', 'torch.CmdLine', {})
      assert.equal('torch.CmdLine', getmetatable(Own).__typename)
   end)
end)
