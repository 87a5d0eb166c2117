-- Printing: Torch7's column formats, scales, blocks of columns, nested matrices.
local T = torch.Tensor

describe('tostring', function()
   it('of integers uses the width of the largest', function()
      assert.equal(' 1\n 2\n[torch.DoubleTensor of size 2]\n', tostring(T{1, 2}))
      assert.equal('  1   2\n 30  40\n[torch.LongTensor of size 2x2]\n', tostring(torch.LongTensor{{1, 2}, {30, 40}}))
      assert.equal('1.00000e+10\n[torch.DoubleTensor of size 1]\n', tostring(T{1e10}))
   end)

   it('of fractions shows four decimals', function()
      assert.equal(' 0.5000\n 1.2500\n[torch.FloatTensor of size 2]\n', tostring(torch.FloatTensor{0.5, 1.25}))
      assert.equal('   1.5000  100.2500\n[torch.DoubleTensor of size 1x2]\n', tostring(T{{1.5, 100.25}}))
   end)

   it('takes out a scale', function()
      assert.equal('0.001 *\n 1.0000\n 2.0000\n[torch.DoubleTensor of size 2]\n', tostring(T{0.001, 0.002}))
      assert.equal('1e-05 *\n 1.5000\n[torch.DoubleTensor of size 1]\n', tostring(T{1.5e-5}))
      assert.equal('0.01 *\n  1.0000  2.0000\n  3.0000  4.0000\n[torch.DoubleTensor of size 2x2]\n', tostring(T{{0.01, 0.02}, {0.03, 0.04}}))
   end)

   it('uses exponents when values spread', function()
      assert.equal(' 1.0000e-03\n 1.0000e+05\n[torch.DoubleTensor of size 2]\n', tostring(T{0.001, 1e5}))
   end)

   it('splits wide matrices into blocks of columns', function()
      local s = tostring(T(2, 30):fill(0.5))
      assert.is_truthy(s:find('^Columns 1 to 10\n'))
      assert.is_truthy(s:find('\n\nColumns 11 to 20\n', 1, true))
      assert.is_truthy(s:find('%[torch.DoubleTensor of size 2x30%]\n$'))
   end)

   it('walks three and more dimensions', function()
      assert.equal('(1,.,.) = \n  1  2\n\n(2,.,.) = \n  3  4\n[torch.DoubleTensor of size 2x1x2]\n', tostring(T{{{1, 2}}, {{3, 4}}}))
      local s = tostring(T(2, 2, 1, 1):zero())
      assert.is_truthy(s:find('(1,1,.,.) = \n  0\n\n(2,1,.,.) = ', 1, true))
   end)

   it('of empty tensors and storages', function()
      assert.equal('[torch.DoubleTensor with no dimension]\n', tostring(T()))
      assert.equal(' 1\n 2\n[torch.LongStorage of size 2]\n', tostring(torch.LongStorage{1, 2}))
   end)

   it('survives NaN and infinities', function()
      local s = tostring(T{0 / 0, 1 / 0, -1 / 0, 1})
      assert.is_truthy(s:find('nan') and s:find('inf') and s:find('%-inf'))
   end)
end)
