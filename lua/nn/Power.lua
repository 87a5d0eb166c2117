-- Power: the input to a constant power.

local Power = torch.class('nn.Power', 'nn.Module')

function Power:__init(p)
   nn.Module.__init(self)
   self.pow = p
   if not p then error 'nn.Power(power)' end
end

function Power:compute(input)
   return torch.pow(input, self.pow)
end
