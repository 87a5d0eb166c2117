-- WhiteNoise: adds normal noise in training.

local WhiteNoise = torch.class('nn.WhiteNoise', 'nn.Module')

WhiteNoise.lastForward = true -- backward belongs to the last forward, whatever tensor holds the input

--- mean (0) and standard deviation std (0.1).
function WhiteNoise:__init(mean, std)
   nn.Module.__init(self)
   self.mean = mean or 0
   self.std = std or 0.1
   self.noise = torch.Tensor()
   self.train = true
end

function WhiteNoise:compute(input)
   if self.train == false then return input * 1 end
   return input + input.new(input:size()):normal(self.mean, self.std)
end

function WhiteNoise:clearState()
   if self.noise then self.noise:set() end
   return nn.Module.clearState(self)
end
