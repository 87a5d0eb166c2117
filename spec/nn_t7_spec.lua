-- Models that the original Torch7 wrote: they load, and give the outputs, gradients and losses that it gave (see data/t7/README.md).

local folder = 'spec/data/t7/'

local function load(name)
   return torch.load(folder .. 'model_' .. name .. '.t7'), torch.load(folder .. 'model_' .. name .. '_expect.t7')
end

describe('models of the original', function()
   for _, name in ipairs {'mlp', 'double', 'conv', 'lookup', 'tables'} do
      it(name, function()
         local m, want = load(name)
         m:training()
         assert.near(m:forward(want.input), want.output, 1e-5)
         m:zeroGradParameters()
         local dx = m:backward(want.input, want.gradOutput)
         if want.gradInput then
            if torch.isTensor(want.gradInput) and want.gradInput:nElement() == 0 then
               assert.is_true(dx ~= nil)
            elseif name ~= 'lookup' then
               assert.near(dx, want.gradInput, 1e-5)
            end
         end
         local _, grads = m:getParameters()
         assert.near(grads, want.gradParameters, 1e-5)
         assert.near((m:getParameters()), want.parameters, 1e-6)
      end)
   end

   it('come back from a file the same', function()
      local m, want = load 'conv'
      local path = os.tmpname()
      torch.save(path, m:clearState())
      local n = torch.load(path)
      os.remove(path)
      assert.near(n:forward(want.input), want.output, 1e-5)
      assert.equal(tostring(m), tostring(n))
   end)
end)
