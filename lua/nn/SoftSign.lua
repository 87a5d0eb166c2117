-- SoftSign: x / (1 + |x|).

local SoftSign = torch.class('nn.SoftSign', 'nn.Module')

function SoftSign:compute(input)
   return torch.cdiv(input, torch.abs(input) + 1)
end
