-- Log: the natural logarithm.

local Log = torch.class('nn.Log', 'nn.Module')

function Log:compute(input)
   return torch.log(input)
end
