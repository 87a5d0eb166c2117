-- Contiguous: the input itself when it is contiguous, else a contiguous copy.

local Contiguous = torch.class('nn.Contiguous', 'nn.Module')

function Contiguous:compute(input)
   return input:contiguous()
end
