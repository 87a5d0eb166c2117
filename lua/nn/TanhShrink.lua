-- TanhShrink: x - tanh(x).

local TanhShrink = torch.class('nn.TanhShrink', 'nn.Module')

function TanhShrink:compute(input)
   return input - torch.tanh(input)
end
