-- Tools around tensors: Timer, CmdLine, paths, sys, xlua, Tester, memory.
-- luacheck: globals print
local C = require 'relume.core'
local paths, sys, xlua = require 'paths', require 'sys', require 'xlua'

local function raises(pattern, f)
   local ok, err = pcall(f)
   assert.is_false(ok)
   assert.is_truthy(tostring(err):find(pattern), tostring(err))
end

describe('Timer', function()
   it('runs, stops, resumes', function()
      local t = torch.Timer()
      sys.sleep(0.01)
      assert.is_true(t:time().real >= 0.009)
      t:stop()
      local a = t:time().real
      sys.sleep(0.005)
      assert.equal(a, t:time().real)
      t:resume()
      sys.sleep(0.005)
      assert.is_true(t:time().real > a)
      t:reset()
      assert.is_true(t:time().real < a)
      torch.tic()
      assert.is_true(torch.toc() >= 0)
   end)
end)

describe('CmdLine', function()
   it('parses options and arguments', function()
      local cmd = torch.CmdLine()
      cmd:text('A program')
      cmd:argument('file', 'input')
      cmd:option('-lr', 0.1, 'rate')
      cmd:option('-name', 'x', 'name')
      cmd:option('-gpu', false, 'flag')
      local p = cmd:parse{'data.t7', '-lr', '3', '-gpu'}
      assert.same({file = 'data.t7', lr = 3, name = 'x', gpu = true}, p)
      assert.equal('run,gpu=t,lr=3', cmd:string('run', {lr = 3, name = 'x', gpu = true}, {}))
      assert.is_true(cmd:parse{'f', '-gpu', 'true'}.gpu)
   end)
end)

describe('paths', function()
   it('takes names apart and together', function()
      assert.equal('b.lua', paths.basename('/a/b.lua'))
      assert.equal('b', paths.basename('/a/b.lua', 'lua'))
      assert.equal('/a', paths.dirname('/a/b.lua'))
      assert.equal('.', paths.dirname('b.lua'))
      assert.equal('lua', paths.extname('/a/b.lua'))
      assert.equal('/a/c', paths.concat('/a', 'b', '..', 'c'))
      assert.equal(paths.cwd() .. '/x', paths.concat('x'))
   end)

   it('makes and removes folders', function()
      local dir = os.tmpname()
      os.remove(dir)
      assert.is_truthy(paths.mkdir(dir .. '/deep'))
      assert.is_true(paths.dirp(dir))
      io.open(dir .. '/f.txt', 'w'):close()
      assert.is_true(paths.filep(dir .. '/f.txt'))
      local names = {}
      for f in paths.iterfiles(dir) do names[#names + 1] = f end
      assert.same({'f.txt'}, names)
      for d in paths.iterdirs(dir) do assert.equal('deep', d) end
      assert.same({'.', '..', 'deep', 'f.txt'}, paths.dir(dir))
      paths.rmall(dir, 'yes')
      assert.is_false(paths.dirp(dir))
      raises('yes', function() paths.rmall(dir) end)
   end)

   it('knows the calling file', function()
      assert.equal('bind_tools_spec.lua', paths.basename(paths.thisfile()))
   end)
end)

describe('sys and xlua', function()
   it('clock, execute, formatTime, unpack', function()
      assert.is_true(sys.clock() > 1e9)
      assert.equal('hi', sys.execute('echo hi'))
      assert.equal('1m5s', xlua.formatTime(65))
      local t, a, b = xlua.unpack({{a = 3}}, 'f', 'text', {arg = 'a', type = 'number', req = true}, {arg = 'b', type = 'number', default = 4})
      assert.equal(3, t.a)
      assert.equal(3, a)
      assert.equal(4, b)
      raises('missing argument', function() xlua.unpack({{}}, 'f', '', {arg = 'a', type = 'number', req = true}) end)
   end)
end)

describe('Tester', function()
   it('counts and fails', function()
      local tester, suite = torch.Tester(), torch.TestSuite()
      function suite.good() tester:eq(torch.Tensor{1}, torch.Tensor{1}) tester:assertlt(1, 2) tester:assertError(error) end
      tester:add(suite)
      local write, out = io.write, {}
      io.write = function(...) out[#out + 1] = table.concat({...}) end -- luacheck: ignore
      tester:run()
      assert.equal(3, tester.countasserts)
      tester:add(function() tester:eq({a = 1}, {a = 2}) end, 'bad')
      local ok = pcall(tester.run, tester)
      io.write = write -- luacheck: ignore
      assert.is_false(ok)
      assert.equal(1, #tester.errors)
      assert.equal(4, tester.countasserts)
      assert.truthy(table.concat(out):find('bind_tools_spec.lua:%d+', 1))
      raises('already defined', function() function suite.good() end end)
   end)
end)

describe('memory', function()
   it('dead tensors are collected before memory grows', function()
      collectgarbage()
      collectgarbage()
      C.resetPeak()
      local before = C.memory().live
      for _ = 1, 100 do torch.FloatTensor(2500000):fill(1) end
      assert.is_true(C.memory().peak - before < 150e6, C.memory().peak - before)
   end)
end)

describe('settings', function()
   it('RELUME_THREADS limits the kernels\' threads', function()
      if (os.getenv 'BUILD' or ''):find 'asan' then return end -- the program is an interpreter of its own
      local name = os.tmpname()
      local file = assert(io.open(name, 'w'))
      file:write(("package.path, package.cpath = %q, %q; require 'torch'; print(torch.getnumthreads())"):format(package.path, package.cpath))
      file:close()
      for _, n in ipairs { 1, 3 } do
         local pipe = assert(io.popen(('RELUME_THREADS=%d luajit %s 2>&1'):format(n, name)))
         assert.equal(n .. '\n', pipe:read '*a')
         pipe:close()
      end
      os.remove(name)
   end)
end)
