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

--- multinomialAlias(output, state): fills the Long tensor output with classes drawn with replacement.
function M.multinomialAlias(output, state)
   local J, q = state[1], state[2]
   local n = output:nElement()
   local class = torch.LongTensor(n):random(1, J:size(1))
   local keep = torch.DoubleTensor(n):uniform():lt(q:index(1, class))
   local drawn = C.op.where(keep, class, J:index(1, class))
   return output:copy(drawn)
end

rawset(torch, 'multinomialAliasSetup', M.multinomialAliasSetup)
rawset(torch, 'multinomialAlias', M.multinomialAlias)

return M
