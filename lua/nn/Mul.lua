-- Mul: the input times one learnt number.

local Mul = torch.class('nn.Mul', 'nn.Module')

function Mul:__init()
   nn.Module.__init(self)
   self.weight = torch.Tensor(1)
   self.gradWeight = torch.Tensor(1)
   self:reset()
end

function Mul:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.weight:size(1))
   self.weight:uniform(-stdv, stdv)
end

function Mul:compute(input, weight)
   return torch.cmul(input, weight:expandAs(input))
end
