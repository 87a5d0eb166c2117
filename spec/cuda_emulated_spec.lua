-- The compiled specs of CUDA on a GPU in software (spec/support/cuda), where there is no GPU and a C++ compiler.
local C = require 'relume.core'

describe('a GPU in software', function()
   local function passes(name, what, least)
      it(name, function()
         if C.cuda.count() > 0 then return pending('this machine has a GPU') end
         if os.execute 'command -v g++ >/dev/null 2>&1' ~= 0 then return pending('no g++') end
         local pipe = assert(io.popen(('EMU_CUDNN=%d sh spec/support/cuda/run.sh luajit /usr/bin/busted spec/%s 2>&1'):format(what:find 'convolutions' and 1 or 0, what)))
         local text = pipe:read '*a'
         pipe:close()
         assert.is_true((tonumber(text:match '(%d+) passed, 0 failed, 0 skipped') or 0) >= least, text)
      end)
   end
   passes('passes the specs of compiled CUDA', 'cuda_compile_spec.lua', 10)
   passes('passes convolutions on its cuDNN', 'cuda_spec.lua --filter=convolutions', 2)
end)
