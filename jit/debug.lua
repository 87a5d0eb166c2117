-- Debug output of capture: RELUME_DEBUG=1 compiles and breaks, 3 guards and recompiles, 4 generated source, 6 bytecode with the
-- symbolic stack (level, text -> stderr).

local bytecode = require 'relume.jit.bytecode'
local value = require 'relume.jit.value'

local M = {}
local okC, C = pcall(require, 'relume.core')
M.level = okC and C.env and C.env 'debug' or tonumber(os.getenv 'RELUME_DEBUG' or '0') or 0

--- Writes a line when the level is on.
function M.log(level, ...)
   if M.level >= level then io.stderr:write('[relume] ', string.format(...), '\n') end
end

-- A value in few letters.
local function short(v)
   if v.k == 'const' then return type(v.v) == 'string' and ('%q'):format(v.v:sub(1, 12)) or tostring(v.v) end
   if v.k == 'num' then return 'num ' .. tostring(v.hint) end
   if v.k == 'tensor' then return 'tensor' .. (v.src and ' ' .. v.src.text or '') end
   return value.luatype(v) .. (v.src and ' ' .. v.src.text or '')
end

--- Prints an instruction and the slots before it (level 6).
function M.trace(_, f, ins)
   local slots = {}
   for i = 0, f.proto.framesize - 1 do
      local v = f.slots[i]
      if v and v ~= value.NIL then slots[#slots + 1] = ('%d=%s'):format(i, short(v)) end
   end
   io.stderr:write(('%-24s %04d  %-28s | %s\n'):format(bytecode.where(f.proto, f.pc), f.pc, bytecode.format(f.proto, ins), table.concat(slots, '  ')))
end

return M
