-- ZeroGrad: the identity whose gradient is zero.

local ZeroGrad = torch.class('nn.ZeroGrad', 'nn.Module')

function ZeroGrad:updateOutput(input)
   self.output:set(input)
   return self.output
end

function ZeroGrad:updateGradInput(input)
   self.gradInput:resizeAs(input):zero()
   return self.gradInput
end
