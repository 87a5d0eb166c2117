-- The dimension that SoftMax and its kin work along: planes of (planes), (batch, planes), (planes, h, w) or (batch, planes, h, w).

return function(x)
   local d = x:dim()
   if d == 1 or d == 3 then return 0 end
   if d == 2 or d == 4 then return 1 end
   error(('1D, 2D, 3D or 4D tensor expected; got %dD'):format(d), 0)
end
