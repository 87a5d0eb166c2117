-- The null device: every CUDA kernel of the table compiles without a GPU (NVRTC alone).
local C = require 'relume.core'

describe('CUDA sources', function()
   local have, why = C.cuda.nvrtc()

   local function compiles(dtype, arch)
      it(('compile for %s tensors on %s'):format(dtype, arch), function()
         if not have then return pending(why) end
         assert.is_true(C.cuda.compile(C.cuda.source(dtype), arch) > 1000)
         for _, file in ipairs { 'prims', 'order', 'plane', 'rows' } do
            local size = C.cuda.compile(C.cuda.source(dtype, file), arch)
            assert.is_true(size > ((file == 'prims' or file == 'order') and 1000 or 0))
         end
      end)
   end
   local all = os.getenv 'RELUME_DEVICE' == 'null'
   for _, dtype in ipairs {'Byte', 'Char', 'Short', 'Int', 'Long', 'Half', 'BFloat16', 'Float', 'Double'} do
      if all or dtype == 'Float' or dtype == 'Int' then compiles(dtype, 'sm_90') end
      if all or dtype == 'Half' then compiles(dtype, 'sm_80') end
   end

   it('say what NVRTC refuses', function()
      if not have then return pending(why) end
      local ok, message = pcall(C.cuda.compile, 'extern "C" __global__ void f() { no_such(); }', 'sm_90')
      assert.is_false(ok)
      assert.truthy(message:find('no_such', 1, true))
   end)

   it('are one module for a row and a dtype', function()
      local text = C.cuda.source('Float', 'tanh')
      assert.truthy(text:find('ew_tanh_f32', 1, true))
      assert.truthy(text:find('rl_tanh_f32(x)', 1, true))
      assert.is_nil(C.cuda.source('Int', 'tanh'))
      assert.is_nil(C.cuda.source('Float', 'matmul'))
      assert.has_error(function() C.cuda.source('Float', 'no_such_op') end)
   end)

   it('need a GPU to run, and cutorch says what is missing', function()
      local n, reason = C.cuda.count()
      if n > 0 then return pending('this machine has a GPU') end
      local ok, message = pcall(require, 'cutorch')
      assert.is_false(ok)
      assert.truthy(message:find('[cuda] no GPU can be used', 1, true))
      assert.truthy(#reason > 40)
      assert.has_error(function() C.cuda.synchronize() end)
      assert.has_error(function() torch.FloatTensor(2):type('torch.CudaTensor') end)
   end)
end)
