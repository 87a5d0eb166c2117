-- The package threads: jobs in other Lua states, what goes there and comes back, errors, locks, sharing.

-- luacheck: globals numbered mine __threadid
local threads = require 'threads'
local serialize, shared = require 'threads.serialize', require 'threads.sharedserialize'

-- Runs f with a pool that is ended whatever happens.
local function with(n, f, ...)
   local pool = threads.Threads(n, ...)
   local ok, e = pcall(f, pool)
   pcall(pool.terminate, pool)
   if not ok then error(e, 0) end
end

local function sharing(f)
   threads.serialization 'threads.sharedserialize'
   local ok, e = pcall(f)
   threads.Threads.serialization 'threads.serialize'
   if not ok then error(e, 0) end
end

describe('threads.Threads', function()
   it('runs jobs with their upvalues and arguments, and gives results to end callbacks', function()
      local message, seen, ids = 'from the main thread', {}, {}
      with(3, function(pool)
         for i = 1, 20 do
            pool:addjob(function(a, b, ...)
               return i, message .. #a, b, __threadid, select('#', ...)
            end, function(k, text, b, id, n)
               seen[k] = text
               ids[id] = true
               assert.is_nil(b)
               assert.equal(2, n)
            end, {1, 2, 3}, nil, nil, nil)
         end
         pool:synchronize()
         assert.is_false(pool:hasjob())
      end)
      for i = 1, 20 do assert.equal('from the main thread3', seen[i]) end
      for id in pairs(ids) do assert.is_true(id >= 1 and id <= 3) end
   end)

   it('initialises each thread, function by function', function()
      local model = nn.Linear(3, 2)
      with(2, function(pool)
         pool:specific(true)
         for i = 1, 2 do
            pool:addjob(i, function() return numbered, mine:forward(torch.ones(3)) end, function(n, y)
               assert.equal(i * 10, n)
               assert.is_true((model:forward(torch.ones(3)) - y):abs():max() == 0)
            end)
         end
         pool:synchronize()
      end, function(id) numbered = id * 10 require 'nn' end, function() mine = model:clone() end)
   end)

   it('is made by calling the package too', function()
      local pool = threads(1)
      local n
      pool:addjob(function() return 7 end, function(r) n = r end)
      pool:dojob()
      assert.equal(7, n)
      assert.is_false(pool:haserror())
      pool:terminate()
      pool:terminate()
      assert.is_false(pcall(pool.addjob, pool, function() end))
   end)

   it('carries errors back with a traceback and goes on', function()
      with(2, function(pool)
         local good = 0
         local function inner() error 'no such picture' end
         for i = 1, 4 do
            pool:addjob(function() if i == 2 then inner() end return i end, function() good = good + 1 end)
         end
         local ok, e = pcall(pool.synchronize, pool)
         assert.is_false(ok)
         assert.truthy(e:find('no such picture', 1, true))
         assert.truthy(e:find 'thread %d callback')
         assert.truthy(e:find 'threads_spec.lua:%d+: in function')
         assert.equal(3, good)
         pool:addjob(function() return 1 end, function() error 'late' end)
         while pool:hasjob() do pool:dojob() end
         assert.is_true(pool:haserror())
         assert.truthy(select(2, pcall(pool.synchronize, pool)):find 'endcallback%].*late')
         pool:synchronize()
         pool:addjob(function() return coroutine.create(print) end)
         assert.truthy(select(2, pcall(pool.synchronize, pool)):find 'results cannot be sent')
      end)
      local ok, e = pcall(threads.Threads, 2, function() error 'bad start' end)
      assert.is_false(ok)
      assert.truthy(e:find 'bad start')
      assert.is_false(pcall(threads.Threads, 0))
      assert.is_false(pcall(threads.Threads, 1, 'no function'))
   end)

   it('refuses what cannot be sent before anything is queued', function()
      with(1, function(pool)
         local c = coroutine.create(print)
         assert.is_false(pcall(pool.addjob, pool, function() return c end))
         assert.is_false(pcall(pool.addjob, pool, 3))
         assert.is_false(pcall(pool.addjob, pool, function() end, 3))
         assert.is_false(pool:hasjob())
         assert.is_false(pcall(pool.dojob, pool))
      end)
   end)

   it('runs a job on the thread that is asked for in specific mode', function()
      with(3, function(pool)
         pool:specific(true)
         local who = {}
         for round = 1, 3 do
            for i = 3, 1, -1 do
               pool:addjob(i, function() return __threadid end, function(id) who[#who + 1] = id == i and round end)
            end
         end
         pool:synchronize()
         assert.equal(9, #who)
         for _, ok in ipairs(who) do assert.truthy(ok) end
         assert.is_true(pool:acceptsjob(2))
         assert.is_false(pcall(pool.addjob, pool, function() end))
         assert.is_false(pcall(pool.addjob, pool, 4, function() end))
         pool:specific(false)
         pool:addjob(function() return true end)
         pool:synchronize()
      end)
   end)

   it('does not run ahead of what takes the results', function()
      with(2, function(pool)
         local added, most, done = 0, 0, 0
         while done < 30 do
            while added < 30 and pool:acceptsjob() do
               added = added + 1
               pool:addjob(function() return 1 end, function() done = done + 1 end)
               most = math.max(most, added - done)
            end
            pool:dojob()
         end
         assert.is_true(most <= 2 + 2 + 2 + 2, 'jobs ahead: ' .. most) -- waiting, running, blocked on results, done
         for _ = 1, 30 do pool:addjob(function() return 1 end, function() done = done + 1 end) end
         pool:synchronize()
         assert.equal(60, done)
      end)
   end)

   it('draws random numbers of its own in each thread, repeatable from a seed', function()
      local function draws(seed)
         local rows = {}
         with(2, function(pool)
            pool:specific(true)
            for i = 1, 2 do pool:addjob(i, function() return torch.rand(4) end, function(r) rows[i] = r end) end
            pool:synchronize()
         end, function(id) torch.manualSeed(seed + id) end)
         return rows
      end
      local a, b = draws(5), draws(5)
      for i = 1, 2 do assert.equal(0, (a[i] - b[i]):abs():max()) end
      assert.is_true((a[1] - a[2]):abs():max() > 0)
      torch.manualSeed(6)
      assert.equal(0, (torch.rand(4) - a[1]):abs():max())
   end)
end)

describe('serialization', function()
   it('sends packages, C functions and compiled functions by name', function()
      local t, net, floor, scale = torch, nn, math.floor, 3
      local f = torch.compile(function(x) return x * scale end)
      with(1, function(pool)
         local y
         pool:addjob(function()
            return f(net.Identity():forward(t.ones(2)) * floor(2.5)), t.type(t.FloatTensor())
         end, function(r, kind)
            y = r
            assert.equal('torch.FloatTensor', kind)
         end)
         pool:synchronize()
         assert.equal(12, y:sum())
      end, function() require 'nn' end)
   end)

   it('keeps sharing between tensors, tables and upvalues', function()
      local base = torch.range(1, 6)
      local o = {a = base:narrow(1, 1, 3), b = base:narrow(1, 3, 3)}
      o.self = o
      local r = serialize.load(serialize.save(o))
      r.a:fill(0)
      assert.equal(0, r.b[1])
      assert.equal(r, r.self)
      assert.equal(1, base[1])
   end)

   it('shares storages when told to, and frees them', function()
      local x = torch.zeros(5)
      local y = shared.load(shared.save({x:narrow(1, 2, 2)}))[1]
      y:fill(3)
      assert.equal(6, x:sum())
      assert.equal(y:storage():size(), 5)
      sharing(function()
         with(2, function(pool)
            for i = 1, 5 do pool:addjob(function() x[i] = i end) end
            pool:synchronize()
         end)
      end)
      assert.same({1, 2, 3, 4, 5}, x:totable())
      x, y = nil, nil -- luacheck: ignore 311 331
      local C = require 'relume.core'
      local function live()
         for _ = 1, 5 do collectgarbage() end
         return C.memory().live
      end
      local before = live()
      for _ = 1, 50 do shared.load(shared.save(torch.zeros(10000))) end
      assert.is_true(live() - before < 10000 * 8 * 5)
   end)

   it('is a package with save and load', function()
      assert.is_false(pcall(threads.serialization, 'string'))
      assert.equal('threads.serialize', threads.serialization())
   end)
end)

describe('locks', function()
   it('let one thread in: mutex by id, threads.safe', function()
      sharing(function()
         local n, mutex = torch.LongTensor(1):zero(), threads.Mutex()
         local id = mutex:id()
         local bump = threads.safe(function() n[1] = n[1] + 1 end)
         with(4, function(pool)
            for _ = 1, 8 do
               pool:addjob(function()
                  local m = require('threads').Mutex(id)
                  for _ = 1, 200 do
                     m:lock()
                     n[1] = n[1] + 1
                     m:unlock()
                  end
               end)
            end
            pool:synchronize()
            assert.equal(1600, n[1])
            for _ = 1, 8 do pool:addjob(function() for _ = 1, 100 do bump() end end) end
            pool:synchronize()
            assert.equal(2400, n[1])
         end)
         mutex:free()
         assert.is_false(pcall(mutex.lock, mutex))
         assert.is_false(pcall(threads.Mutex, id))
         local fails = threads.safe(function() error 'inside' end)
         for _ = 1, 2 do assert.truthy(select(2, pcall(fails)):find 'inside') end
      end)
   end)

   it('wake a thread by a condition', function()
      sharing(function()
         local mutex, condition, flag = threads.Mutex(), threads.Condition(), torch.ByteTensor(1):zero()
         local m, c = mutex:id(), condition:id()
         with(1, function(pool)
            pool:addjob(function()
               local T = require 'threads'
               local lock, signal = T.Mutex(m), T.Condition(c)
               lock:lock()
               while flag[1] == 0 do signal:wait(lock) end
               lock:unlock()
               return 'woken'
            end, function(r) flag = r end)
            mutex:lock()
            flag[1] = 1
            condition:signal()
            mutex:unlock()
            pool:synchronize()
            assert.equal('woken', flag)
         end)
      end)
   end)

   it('count in one step: tds.AtomicCounter', function()
      local counter = require('tds').AtomicCounter()
      sharing(function()
         with(4, function(pool)
            for _ = 1, 8 do pool:addjob(function() for _ = 1, 500 do counter:inc() end end) end
            pool:synchronize()
         end, function() require 'tds' end)
      end)
      assert.equal(4000, counter:get())
   end)
end)

describe('queues and threads by hand', function()
   it('pass jobs between threads', function()
      local Queue = require 'threads.queue'
      local q = Queue(3)
      q:addjob(function(a, b) return a + b end, 1, 2)
      assert.equal(3, q:dojob())
      with(1, function(pool)
         local got
         pool:addjob(function() return q:dojob() end, function(r) got = r end)
         q:addjob(function(x) return x:sum() end, torch.ones(4))
         pool:synchronize()
         assert.equal(4, got)
         assert.is_true(q:isempty())
      end, function() require 'threads.queue' end)
   end)

   it('run a text', function()
      local name = os.tmpname()
      threads.Thread(('local f = io.open(%q, "w") require "torch" f:write(torch.ones(3):sum()) f:close()'):format(name)):free()
      local f = io.open(name)
      assert.equal('3', f:read '*a')
      f:close()
      os.remove(name)
   end)
end)
