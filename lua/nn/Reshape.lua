-- Reshape: the input with other sizes, with or without a batch dimension.

local Reshape = torch.class('nn.Reshape', 'nn.Module')

--- Sizes as numbers or a LongStorage, then batchMode (true: the first dimension is a batch; false: it is not; nil: guessed
-- from the number of elements).
function Reshape:__init(...)
   nn.Module.__init(self)
   local arg = {...}
   if type(arg[#arg]) == 'boolean' then self.batchMode = table.remove(arg) end
   if torch.typename(arg[1]) == 'torch.LongStorage' then arg = arg[1]:totable() end
   self.size = torch.LongStorage(arg)
   self.batchsize = torch.LongStorage(#arg + 1)
   self.nelement = 1
   for i = 1, #arg do
      self.nelement = self.nelement * arg[i]
      self.batchsize[i + 1] = arg[i]
   end
end

function Reshape:compute(input)
   local size, batchMode = self.size, self.batchMode
   input = input:contiguous()
   if batchMode == false or batchMode == nil and input:nElement() == self.nelement and input:size(1) ~= 1 then
      return input:view(size)
   end
   local sizes = {input:size(1)}
   for i = 1, #size do sizes[i + 1] = size[i] end
   return input:view(unpack(sizes))
end

function Reshape:__tostring__()
   return torch.type(self) .. '(' .. table.concat(self.size:totable(), 'x') .. ')'
end
