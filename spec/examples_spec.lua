-- The example programs, run as a user runs them: they train, and compiled they compute what eager computes.
local build = os.getenv 'BUILD' or 'build'
local asan = build:find 'asan' ~= nil

local function run(command)
   local pipe = assert(io.popen(command .. ' 2>&1; echo status $?'))
   local text = pipe:read '*a'
   pipe:close()
   local status = tonumber(text:match 'status (%d+)%s*$')
   assert.equal(0, status, text)
   return text
end

-- Reads a flat JSON object of numbers, strings and one list of numbers.
local function readJson(path)
   local file = assert(io.open(path))
   local text = file:read '*a'
   file:close()
   os.remove(path)
   local out = { losses = {} }
   for key, value in text:gmatch '"([%w_]+)": ([%d%.eE+-]+)' do out[key] = tonumber(value) end
   for value in (text:match '"losses": %[(.-)%]' or ''):gmatch '[^,%s]+' do table.insert(out.losses, tonumber(value)) end
   return out
end

local function mnist(options)
   local path = os.tmpname()
   run(('luajit examples/mnist.lua --json %s %s'):format(path, options))
   return readJson(path)
end

-- Largest relative difference within the first 50 steps; later ones grow apart as rounding errors of any kind do.
local function relative(a, b)
   local worst = 0
   for i = 1, 50 do worst = math.max(worst, math.abs(a[i] - b[i]) / math.abs(b[i])) end
   return worst
end

describe('examples', function()
   if asan then return end -- the programs start interpreters of their own

   for _, model in ipairs { 'mlp', 'lenet' } do
      it(('mnist.lua trains %s alike eager and compiled, as one graph'):format(model), function()
         local options = ('--model %s --epochs 1 --seed 3'):format(model)
         local eager, compiled = mnist(options), mnist(options .. ' --compile')
         assert.equal(140, #eager.losses)
         assert.equal(140, #compiled.losses)
         assert.is_true(relative(compiled.losses, eager.losses) < 1e-4, 'losses differ by ' .. relative(compiled.losses, eager.losses))
         assert.is_true(eager.accuracy > 0.8, 'accuracy ' .. eager.accuracy)
         assert.equal(1, compiled.graphs)
         assert.equal(0, compiled.breaks)
      end)
   end

   it('mnist.lua saves a network that loads', function()
      local path = os.tmpname()
      mnist('--model mlp --epochs 1 --batch 900 --save ' .. path)
      local net = torch.load(path)
      os.remove(path)
      assert.equal('nn.Sequential', torch.typename(net))
      assert.equal(10, net:forward(torch.FloatTensor(2, 1, 28, 28):fill(0)):size(2))
   end)

   it('wrong options end with one line and status 2, before any work', function()
      local function refused(command, message)
         local pipe = assert(io.popen(('luajit examples/%s 2>&1; echo status $?'):format(command)))
         local text = pipe:read '*a'
         pipe:close()
         assert.truthy(text:find(message, 1, true), text)
         assert.truthy(text:find '\nstatus 2', text)
         assert.equal(2, select(2, text:gsub('\n', '')), text)
      end
      refused('mnist.lua --modle mlp', 'unknown option --modle')
      refused('mnist.lua --epochs', 'option --epochs needs a value')
      refused('mnist.lua --lr x', 'option --lr needs a number, got x')
      refused('mnist.lua --model cnn', 'option --model needs one of mlp, lenet, got cnn')
      refused('mnist.lua --batch 0', 'option --batch needs a whole number from 1 on, got 0')
      refused('mnist.lua --batch 10000', 'option --batch needs at most 9000, got 10000')
      refused('mnist.lua --data nowhere', '[idx] no such file; got nowhere/')
      refused('mnist.lua --json nowhere/x.json', 'option --json needs a file that can be written')
      refused('mnist.lua --save nowhere/x.t7', 'option --save needs a file that can be written')
      refused('bench/run.lua --only fuse,nosuch', 'option --only needs some of')
      refused('bench/run.lua --modes fast', 'option --modes needs some of eager, compile, got fast')
      refused('bench/overhead.lua --json nowhere/x.json', 'option --json needs a file that can be written')
   end)

   it('fuse.lua prints the generated C', function()
      assert.truthy(run('RELUME_CACHE=' .. build .. '/fuse-cache luajit examples/fuse.lua'):find 'for %(')
   end)

   it("the README's program is examples/first.lua and does what it says", function()
      local function read(path)
         local file = assert(io.open(path))
         local text = file:read '*a'
         file:close()
         return text
      end
      local shown, promised = read('README.md'):match '```lua\n(.-)```\n\n```\n(.-)```'
      local program = read('examples/first.lua'):match '%-%- README:\n(.*)$'
      assert.equal(program, shown)
      local output = run 'luajit examples/first.lua'
      for step, loss in promised:gmatch 'step%s+(%d+)%s+loss ([%d%.]+)' do
         local got = tonumber(output:match('step%s+' .. step .. '%s+loss ([%d%.]+)'))
         assert.is_true(got ~= nil and math.abs(got - loss) <= 0.2 * loss + 1e-5, ('step %s: got %s, the README says %s'):format(step, tostring(got), loss))
      end
   end)
end)
