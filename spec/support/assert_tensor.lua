-- assert.near(got, want, tolerance): tensors, numbers or tables of both agree, sizes and types included; |got - want| <= tolerance * (1 + |want|).
-- Two NaNs agree, infinities agree by sign. The message names the first element that differs.
local assert, say = require 'luassert', require 'say'

say:set('assertion.near.positive', 'Expected values to be near:\n%s')
say:set('assertion.near.negative', 'Expected values to differ:\n%s')

local function numbersNear(got, want, tolerance)
   if got ~= got or want ~= want then return got ~= got and want ~= want end
   if got == want then return true end
   return math.abs(got - want) <= tolerance * (1 + math.abs(want))
end

local function sizes(t)
   return table.concat(t:size():totable(), 'x')
end

local near
local function tensorsNear(got, want, tolerance, path)
   if torch.typename(got) ~= torch.typename(want) then
      return false, ('%s: type; got %s, need %s'):format(path, torch.typename(got), torch.typename(want))
   end
   if got:dim() ~= want:dim() or sizes(got) ~= sizes(want) then
      return false, ('%s: sizes; got %s, need %s'):format(path, sizes(got), sizes(want))
   end
   local n = want:nElement()
   if n == 0 then return true end
   local a, b = got:double():contiguous(), want:double():contiguous() -- held while their pointers are read
   local pa, pb = a:data(), b:data()
   for i = 0, n - 1 do
      if not numbersNear(pa[i], pb[i], tolerance) then
         return false, ('%s: element %d of %d; got %.10g, need %.10g'):format(path, i + 1, n, pa[i], pb[i])
      end
   end
   return true
end

function near(got, want, tolerance, path)
   if type(want) == 'number' and type(got) == 'number' then
      return numbersNear(got, want, tolerance), ('%s: got %.10g, need %.10g'):format(path, got, want)
   end
   if type(want) == 'table' and type(got) == 'table' and not torch.isTensor(want) then
      for key, value in pairs(want) do
         local ok, why = near(got[key], value, tolerance, ('%s[%s]'):format(path, tostring(key)))
         if not ok then return false, why end
      end
      return true
   end
   if torch.isTensor(want) and torch.isTensor(got) then return tensorsNear(got, want, tolerance, path) end
   return got == want, ('%s: got %s, need %s'):format(path, tostring(got), tostring(want))
end

local function nearAssertion(_, arguments)
   local ok, why = near(arguments[1], arguments[2], arguments[3] or 1e-6, 'value')
   arguments[1], arguments.n = why or '', 1
   return ok
end

assert:register('assertion', 'near', nearAssertion, 'assertion.near.positive', 'assertion.near.negative')
