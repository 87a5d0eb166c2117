-- fit: the shape in which CAdd and CMul meet their input.

--- The parameter with as many dimensions as the input, 1 in front. One with more dimensions has a sample's elements in order.
return function(p, input)
   if p:dim() == input:dim() then return p end
   if p:nElement() == input:nElement() then return p:viewAs(input) end
   if p:dim() > input:dim() then
      local size = input:size()
      size[1] = 1
      return p:view(size)
   end
   local sizes, extra = {}, input:dim() - p:dim()
   for i = 1, extra do sizes[i] = 1 end
   for i = 1, p:dim() do sizes[extra + i] = p:size(i) end
   return p:view(unpack(sizes))
end

