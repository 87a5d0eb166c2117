-- What the paddings that repeat the image's own pixels share: positions along one dimension, and the lookup.

local op = require('relume.core').op
local pad = {}

--- Positions (from 0) of a padded line of n pixels, mirrored at the edges.
function pad.reflect(n, before, after)
   if before >= n or after >= n then
      error(('[SpatialReflectionPadding] padding; got %d and %d, need less than the size %d'):format(before, after, n), 0)
   end
   local i = op.sub(op.iota(n + before + after, 'Long'), before)
   return op.sub(n - 1, op.abs(op.sub(n - 1, op.abs(i))))
end

--- The same with the edge pixels repeated.
function pad.replicate(n, before, after)
   return op.clamp(op.sub(op.iota(n + before + after, 'Long'), before), 0, n - 1)
end

--- (..., height, width) taken at the positions that rule gives for both.
function pad.image(x, rule, left, right, top, bottom)
   local d = x:dim()
   if d ~= 3 and d ~= 4 then error(('3D or 4D (batch mode) tensor expected; got %dD'):format(d), 0) end
   local y = op.index_select(x, rule(x:size(d - 1), top, bottom), d - 2)
   return op.index_select(y, rule(x:size(d), left, right), d - 1)
end

return pad
