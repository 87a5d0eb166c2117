-- Results do not depend on the number of threads: one program under 1 and 4 threads gives the same bits, eager and compiled. Products of large
-- matrices are left out: OpenBLAS divides them by threads.
local program = [[
package.path, package.cpath = ...
require 'torch'
require 'nn'
local C = require 'relume.core'
torch.manualSeed(11)
local out = {}
local function keep(...) -- a digest of every bit
   for _, t in ipairs{ ... } do
      local d, h = t:double():contiguous(), 5381
      local words = require 'ffi'.cast('uint32_t *', d:data())
      for i = 0, 2 * d:nElement() - 1 do h = (h * 33 + words[i]) % 4294967291 end
      out[#out + 1] = #out + 1 .. ' ' .. h
   end
end
local function step(x, y, tall)
   local e = C.op.exp(C.op.mul(x, y))
   return C.op.sum(e, {}, false), C.op.sum(tall, { 0 }, false), C.op.sum(C.op.mul(e, x), { 1 }, true), C.op.softmax(x, 0), C.op.softmax(x, 1),
      C.op.amax(tall, { 0 }, false), C.op.cumsum(x, 0), C.op.sin(C.op.tanh(y)), C.op.randn({ 301, 257 }, 'Float')
end
for _, kind in ipairs{ 'float', 'double' } do
   local x, y, tall = torch.randn(301, 257)[kind](torch.randn(301, 257)), torch.randn(301, 257)[kind](torch.randn(301, 257)), torch.randn(20011, 9)
   tall = tall[kind](tall)
   keep(step(x, y, tall))
   keep(torch.compile(step)(x, y, tall))
   local idx = torch.LongTensor(5000):random(0, 300)
   local src = torch.randn(5000, 257)
   src = src[kind](src)
   keep(C.op.index_add(x, idx, src, 0), C.op.index_select(x, idx, 0), C.op.scatter_add(x, idx:narrow(1, 1, 301):contiguous():view(301, 1):expand(301, 257):contiguous(), y, 0))
   local img, w = torch.randn(9, 3, 17, 19), torch.randn(8, 3, 3, 3)
   img, w = img[kind](img), w[kind](w)
   local r = C.op.conv2d(img, w, nil, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1)
   keep(r, C.op.conv2d_dw(r, img, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1), C.op.conv2d_dx(r, w, { 17, 19 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1))
   local p, at = C.op.max_pool2d(r, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 })
   keep(p, at, C.op.max_pool2d_dx(p, at, { 17, 19 }))
end
print(table.concat(out, '\n'))
]]

it('one and four threads give the same bits, eager and compiled', function()
   local path = os.tmpname()
   local f = assert(io.open(path, 'w'))
   f:write((program:gsub('package%.path, package%.cpath = %.%.%.', function() return ('package.path, package.cpath = %q, %q'):format(package.path, package.cpath) end)))
   f:close()
   local function run(threads)
      local pipe = assert(io.popen(('OMP_NUM_THREADS=%d luajit %s 2>&1'):format(threads, path)))
      local text = pipe:read '*a'
      pipe:close()
      return text
   end
   local one, four = run(1), run(4)
   os.remove(path)
   local _, lines = one:gsub('\n', '\n')
   assert.equal(54, lines, one)
   assert.equal(one, four)
end)
