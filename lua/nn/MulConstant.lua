-- MulConstant: the input times a constant.

local MulConstant = torch.class('nn.MulConstant', 'nn.Module')

--- ip: the input may be overwritten (memory is planned by the compiler; eager ignores it).
function MulConstant:__init(constant_scalar, ip)
   nn.Module.__init(self)
   assert(type(constant_scalar) == 'number', 'input is not scalar!')
   self.constant_scalar = constant_scalar
   self.inplace = ip or false
   if type(self.inplace) ~= 'boolean' then error 'in-place flag must be boolean' end
end

function MulConstant:compute(input)
   return torch.mul(input, self.constant_scalar)
end
