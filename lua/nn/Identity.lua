-- Identity: gives its input back.

local Identity = torch.class('nn.Identity', 'nn.Module')

function Identity:updateOutput(input)
   self.output = input
   return input
end

function Identity:updateGradInput(_, gradOutput)
   self.gradInput = gradOutput
   return gradOutput
end

function Identity:clearState()
   for _, f in ipairs {'output', 'gradInput'} do
      local old = self[f]
      self[f] = torch.isTensor(old) and old.new() or {}
   end
   return self
end
