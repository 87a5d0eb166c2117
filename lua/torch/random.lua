-- Random: many draws from one distribution by the alias method (Walker 1977, Vose 1991).
local C = require 'relume.core'
local torch = C.torch
local M = {}

--- multinomialAliasSetup(probabilities) -> state {J, q}: alias (Long) and acceptance probability of every class.
function M.multinomialAliasSetup(probs)
   if probs:dim() ~= 1 then error('[multinomialAliasSetup] probabilities; got ' .. probs:dim() .. ' dimensions, need 1', 2) end
   local n, q, J = probs:size(1), probs:double():totable(), {}
   local total, small, large = 0, {}, {}
   for k = 1, n do
      if q[k] < 0 or q[k] ~= q[k] then error('[multinomialAliasSetup] probability ' .. k .. '; got ' .. tostring(q[k]) .. ', need 0 or more', 2) end
      total = total + q[k]
   end
   if total <= 0 then error('[multinomialAliasSetup] sum of probabilities; got 0, need more', 2) end
   for k = 1, n do
      q[k], J[k] = q[k] / total * n, k
      local side = q[k] < 1 and small or large
      side[#side + 1] = k
   end
   while #small > 0 and #large > 0 do
      local s, l = table.remove(small), large[#large]
      J[s] = l
      q[l] = q[l] - (1 - q[s])
      if q[l] < 1 then
         large[#large] = nil
         small[#small + 1] = l
      end
   end
   for _, rest in ipairs {small, large} do -- what is left differs from 1 by rounding only
      for _, k in ipairs(rest) do q[k] = 1 end
   end
   return {torch.LongTensor(J), torch.DoubleTensor(q)}
end

--- multinomialAliasSetup_([J, q,] probabilities) or (probabilities, J, q) -> J, q: the same as tensors.
function M.multinomialAliasSetup_(a, b, c)
   local probs, J, q = a, b, c
   if torch.typename(a) == 'torch.LongTensor' and c then J, q, probs = a, b, c end
   local state = M.multinomialAliasSetup(probs)
   state[2] = state[2]:typeAs(probs)
   if J then state[1] = J:resizeAs(state[1]):copy(state[1]) end
   if q then state[2] = q:resizeAs(state[2]):copy(state[2]) end
   return state[1], state[2]
end

--- multinomialAlias_(output, J, q): multinomialAlias with the state as two tensors.
function M.multinomialAlias_(output, J, q)
   return M.multinomialAlias(output, {J, q:double()})
end

--- multinomialAlias(output, state): fills the Long tensor output with classes drawn with replacement.
function M.multinomialAlias(output, state)
   local J, q = state[1], state[2]:double()
   local n = output:nElement()
   local class = torch.LongTensor(n):random(1, J:size(1))
   local keep = torch.DoubleTensor(n):uniform():lt(q:index(1, class))
   local drawn = C.op.where(keep, class, J:index(1, class))
   return output:copy(drawn)
end

for _, name in ipairs {'multinomialAlias', 'multinomialAlias_', 'multinomialAliasSetup', 'multinomialAliasSetup_'} do rawset(torch, name, M[name]) end

-- A generator in a file: the original's 5048 bytes of an mt19937 state; a Philox state with zeros behind it takes as many.
local GENERATOR = 5048

--- Writes a generator's state.
function M.writeGenerator(self, file)
   local state, block = torch.getRNGState(self), torch.ByteTensor(GENERATOR):zero()
   block:narrow(1, 1, state:nElement()):copy(state)
   if state:nElement() < GENERATOR then block[GENERATOR] = state:nElement() end -- padding of the original's, 0 there
   file:writeByte(block:storage())
end

--- Reads it again: the state says of what kind it is.
function M.readGenerator(self, file)
   local bytes = file:readByte(GENERATOR)
   if #bytes ~= GENERATOR then error(('[load] generator; got %d bytes, need %d'):format(#bytes, GENERATOR), 0) end
   local block = torch.ByteTensor(bytes)
   local short = block[GENERATOR]
   torch.setRNGState(self, short > 0 and block:narrow(1, 1, short):clone() or block)
   return self
end

--- Allocators are handles of C code; the core has one of its own.
local Allocator = torch.class('torch.Allocator')
function Allocator.__init()
   error('[Allocator] handles come from C code; got a call from Lua, need the storages of the core', 3)
end

return M
