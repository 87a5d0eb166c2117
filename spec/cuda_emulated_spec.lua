-- The compiled specs of CUDA on a GPU in software (spec/support/cuda), where there is no GPU and a C++ compiler.
local C = require 'relume.core'

describe('a GPU in software', function()
   it('passes the specs of compiled CUDA', function()
      if C.cuda.count() > 0 then return pending('this machine has a GPU') end
      if os.execute 'command -v g++ >/dev/null 2>&1' ~= 0 then return pending('no g++') end
      local pipe = assert(io.popen 'sh spec/support/cuda/run.sh luajit /usr/bin/busted spec/cuda_compile_spec.lua 2>&1')
      local text = pipe:read '*a'
      pipe:close()
      assert.is_true((tonumber(text:match '(%d+) passed, 0 failed, 0 skipped') or 0) >= 9, text)
   end)
end)
