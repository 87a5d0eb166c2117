-- Clamp: x limited to a range.

local Clamp = torch.class('nn.Clamp', 'nn.HardTanh')

function Clamp:__init(min_value, max_value)
   nn.HardTanh.__init(self, min_value, max_value)
end
