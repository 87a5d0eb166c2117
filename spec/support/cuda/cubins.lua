-- Compiles the sources that an emulated run kept (EMU_SOURCES) for sm_90: luajit spec/support/cuda/cubins.lua folder
-- Put into RELUME_CACHE on a machine with a GPU of that kind, they save it the compiling.
dofile 'spec/helper.lua'
local C = require 'relume.core'
local folder, failed = arg[1], 0
local pipe = assert(io.popen(("ls '%s'"):format(folder)))
for name in pipe:lines() do
   local base = name:match '^(%x+)%.cu$'
   local out = base and ('%s/%s.cubin'):format(folder, base)
   local have = out and io.open(out, 'rb')
   if have then have:close()
   elseif base then
      local file = assert(io.open(('%s/%s'):format(folder, name)))
      local ok, n, code = pcall(C.cuda.compile, file:read '*a', 'sm_90')
      file:close()
      if ok then
         local to = assert(io.open(out, 'wb'))
         to:write(code)
         to:close()
      else
         failed = failed + 1
         print(name, n)
      end
   end
end
os.exit(failed == 0 and 0 or 1)
