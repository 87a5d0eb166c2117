-- AddConstant: the input plus a constant (a number, or a tensor that fits its last dimensions).

local AddConstant = torch.class('nn.AddConstant', 'nn.Module')

--- ip: the input may be overwritten (memory is planned by the compiler; eager ignores it).
function AddConstant:__init(constant_scalar, ip)
   nn.Module.__init(self)
   self.constant_scalar = constant_scalar
   self.inplace = ip or false
   if type(self.inplace) ~= 'boolean' then error 'in-place flag must be boolean' end
end

function AddConstant:compute(input)
   return torch.add(input, self.constant_scalar)
end
