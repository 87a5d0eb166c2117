-- API lists: every public name of the original is there, or is listed here with the reason that it is not.
require 'helper'
local api = dofile 'spec/data/api.lua'
local xlua = require 'xlua'

-- What is left out, and why.
local leftOut = {
   Tester = { names = '_addDebugInfo _assertTableEqOrNeq _assertTensorEqOrNeq _eqOrNeq _failure _getTests _pcall _run _success _warning',
      reason = 'steps inside the original\'s Tester, which its manual does not name' },
   globals = { names = 'torchtest_chunk torchtest_expand torchtest_isSameSizeAs torchtest_isSetTo torchtest_isSize torchtest_isStorage ' ..
      'torchtest_isTensor torchtest_permute torchtest_repeatTensor torchtest_split torchtest_totable torchtest_view',
      reason = 'globals that the original\'s test file forgot to declare local' },
}

local function missing(list, lookup)
   local out, excused = {}, ' ' .. (leftOut[list] and leftOut[list].names or '') .. ' '
   for name in api[list]:gmatch '%S+' do
      local ok, value = pcall(lookup, name)
      if (not ok or value == nil) and not excused:find(' ' .. name .. ' ', 1, true) then out[#out + 1] = name end
   end
   return table.concat(out, ' ')
end

local function member(object)
   return function(name) return object[name] end
end

local numeric = { 'Byte', 'Char', 'Short', 'Int', 'Long', 'Float', 'Double' }

describe('names of', function()
   it('torch', function() assert.equal('', missing('torch', member(torch))) end)
   for _, type in ipairs(numeric) do
      it(type .. 'Tensor', function()
         local x = torch[type .. 'Tensor'](2)
         assert.equal('', missing('Tensor', member(x)))
         assert.equal('', missing(type .. 'Tensor', member(x)))
      end)
      it(type .. 'Storage', function() assert.equal('', missing('Storage', member(torch[type .. 'Storage'](2)))) end)
   end
   it('HalfTensor', function() assert.equal('', missing('HalfTensor', member(torch.HalfTensor(2)))) end)
   it('HalfStorage', function() assert.equal('', missing('Storage', member(torch.HalfStorage(2)))) end)
   it('ByteStorage', function() assert.equal('', missing('ByteStorage', member(torch.ByteStorage(2)))) end)
   for _, class in ipairs { 'DiskFile', 'MemoryFile', 'PipeFile', 'Generator', 'Timer', 'CmdLine', 'Tester', 'Allocator' } do
      it(class, function()
         assert.truthy(torch[class])
         assert.equal('', missing(class, member(torch.getmetatable('torch.' .. class))))
      end)
   end
   for _, package in ipairs { 'paths', 'sys', 'xlua', 'tds', 'threads' } do
      it('package ' .. package, function() assert.equal('', missing(package, member(require(package)))) end)
   end
   it('globals and additions to string and table', function()
      assert.truthy(xlua)
      assert.equal('', missing('globals', member(_G)))
      assert.equal('', missing('extensions', function(name)
         local library, key = name:match '(%w+)%.(%w+)'
         return _G[library][key]
      end))
   end)
   it('what is left out, with a reason each', function()
      for list, entry in pairs(leftOut) do
         assert.is_true(#entry.reason > 20)
         for name in entry.names:gmatch '%S+' do assert.truthy((' ' .. api[list]:gsub('\n', ' ') .. ' '):find(' ' .. name .. ' ', 1, true)) end
      end
   end)
end)

describe('rarer names:', function()
   local function correlation(x, k, flip)
      local kd, kh, kw = k:size(1), k:size(2), k:size(3)
      local out = x.new(x:size(1) - kd + 1, x:size(2) - kh + 1, x:size(3) - kw + 1):zero()
      for a = 1, kd do
         for b = 1, kh do
            for c = 1, kw do
               local w = flip and k[kd + 1 - a][kh + 1 - b][kw + 1 - c] or k[a][b][c]
               out:add(w, x:narrow(1, a, out:size(1)):narrow(2, b, out:size(2)):narrow(3, c, out:size(3)))
            end
         end
      end
      return out
   end

   it('conv3 and xcorr3', function()
      local x, k = torch.randn(5, 6, 7), torch.randn(2, 3, 2)
      assert.near(torch.xcorr3(x, k), correlation(x, k), 1e-10)
      assert.near(torch.conv3(x, k, 'V'), correlation(x, k, true), 1e-10)
      local padded = torch.zeros(7, 10, 9)
      padded:narrow(1, 2, 5):narrow(2, 3, 6):narrow(3, 2, 7):copy(x)
      assert.near(torch.conv3(x, k, 'F'), correlation(padded, k, true), 1e-10)
      local planes, kernels = torch.randn(2, 4, 5, 5), torch.randn(3, 2, 2, 3, 3)
      local sum, res = torch.xcorr3(planes, kernels), torch.Tensor()
      assert.near(sum[3], correlation(planes[1], kernels[3][1]) + correlation(planes[2], kernels[3][2]), 1e-10)
      assert.equal(res, torch.xcorr3(res, planes, kernels[1]))
      assert.near(res[2], correlation(planes[2], kernels[1][2]), 1e-10)
   end)

   it('match', function()
      local a, b = torch.randn(3, 4), torch.randn(2, 4)
      local d = torch.match(a, b, 2)
      assert.same({ 3, 2 }, d:size():totable())
      for i = 1, 3 do
         for j = 1, 2 do assert.near(d[i][j], 2 * (a[i] - b[j]):pow(2):sum(), 1e-12) end
      end
      assert.near(torch.Tensor():match(a, b), d / 2, 1e-12)
   end)

   it('alias tables as tensors', function()
      local J, q = torch.multinomialAliasSetup_(torch.Tensor { 0, 1, 0 })
      local out = torch.LongTensor(50)
      torch.multinomialAlias_(out, J, q)
      assert.equal(2, out:min())
      assert.equal(2, out:max())
   end)

   it('generators in files', function()
      local g = torch.Generator()
      torch.manualSeed(g, 5)
      torch.random(g)
      local copy = torch.deserialize(torch.serialize(g))
      assert.equal('torch.Generator', torch.type(copy))
      for _ = 1, 5 do assert.equal(torch.random(g), torch.random(copy)) end
   end)

   it('string and table additions, OptionParser', function()
      assert.equal(math.pi, ('math.pi'):tosymbol())
      assert.same({ 1, 2, 3 }, table.prune { 1, 2, 1, 3, 2 }) -- luacheck: ignore 143
      local rest, cut = table.splice({ 1, 2, 3, 4 }, 2, 2) -- luacheck: ignore 143
      assert.same({ 1, 4 }, rest)
      assert.same({ 2, 3 }, cut)
      local p = xlua.OptionParser('%prog [options]')
      p:option{ '-n', '--number', default = 3, dest = 'number' }
      p:option{ '-v', '--verbose', action = 'store_true', dest = 'verbose' }
      local opt, files = p:parse { '--number=7', 'a.t7', '-v' }
      assert.same({ number = 7, verbose = true }, opt)
      assert.same({ 'a.t7' }, files)
   end)
end)

describe('tds', function()
   local tds = require 'tds'

   it('Vec', function()
      local v = tds.Vec { 3, 1, 2 }
      v:insert('x')
      v:insert(1, torch.ones(2))
      assert.equal(5, #v)
      assert.equal(2, v[1]:nElement())
      assert.equal('x', v:remove())
      v:remove(1)
      v:sort(function(a, b) return a < b end)
      assert.same({ 1, 2, 3 }, v:totable())
      local seen = {}
      for i, x in ipairs(v) do seen[i] = x end
      assert.same({ 1, 2, 3 }, seen)
      assert.is_false(pcall(function() v[9] = 1 end))
      assert.equal('tds.Vec', torch.type(v))
      local copy = torch.deserialize(torch.serialize(tds.Vec { 1, 'two', tds.Vec { 4 } }))
      assert.equal('two', copy[2])
      assert.equal(4, copy[3][1])
   end)

   it('Hash', function()
      local h = tds.Hash { a = 1 }
      h.b, h[5], h.write = { 1, 2 }, 'five', 'a key'
      assert.equal(4, #h)
      assert.equal(2, h.b[2])
      h.a = nil
      assert.equal(3, #h)
      local n = 0
      for _ in pairs(h) do n = n + 1 end
      assert.equal(3, n)
      local copy = torch.deserialize(torch.serialize(h))
      assert.equal('five', copy[5])
      assert.equal('a key', copy.write)
      assert.truthy(tostring(h):find 'tds.Hash%[3%]')
   end)

   it('AtomicCounter', function()
      local c = tds.AtomicCounter()
      c:inc()
      assert.equal(2, c:inc())
      assert.equal(2, c:get())
   end)
end)
