-- Names: what LuaJIT calls a slot in an error's text (prototype, instruction, slot -> local, upvalue, global, field or method, and its name).

local bytecode = require 'relume.jit.bytecode'
local live = require 'relume.jit.live'

local M = {}

-- Instructions that write all slots from A on, as LuaJIT sees it when it looks for where a slot was loaded.
local base = {}
for op in ('KNIL TSETM CALLM CALL CALLMT CALLT ITERC ITERN VARG ISNEXT RETM FORI JFORI FORL ITERL'):gmatch '%S+' do base[op] = true end

local function writes(i)
   local letters = live.shape[i.op]
   return letters and letters:find '>a$' or i.op == 'CAT' or i.op == 'FNEW' or i.op == 'ISTC' or i.op == 'ISFC'
end

local loads = {}
function loads.GGET(p, i) return 'global', p.kgc[i.d] end
function loads.UGET(p, i) return 'upvalue', p.uvnames and p.uvnames[i.d + 1] end
function loads.TGETS(p, i, before)
   local method = before and before.op == 'MOV' and before.a == i.a + 1 + p.fr2 and before.d == i.b
   return method and 'method' or 'field', p.kgc[i.c]
end

--- Kind and name of a slot at instruction pc; nil when LuaJIT names none.
function M.slot(p, pc, slot)
   while true do
      local name = bytecode.varname(p, pc, slot)
      if name then return 'local', name end
      local moved
      while pc > 1 and not moved do
         pc = pc - 1
         local i = p.code[pc]
         if base[i.op] then
            if slot >= i.a and (i.op ~= 'KNIL' or slot <= i.d) then return end
         elseif writes(i) and i.a == slot then
            if i.op ~= 'MOV' then
               local load = loads[i.op]
               if load then return load(p, i, p.code[pc - 1]) end
               return
            end
            slot, moved = i.d, true
         end
      end
      if not moved then return end
   end
end

return M
