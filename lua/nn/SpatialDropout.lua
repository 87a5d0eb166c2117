-- SpatialDropout (Tompson et al., 2015): zeroes whole planes at random in training; evaluation scales by 1 - p.

local SpatialDropout = torch.class('nn.SpatialDropout', 'nn.Module')

SpatialDropout.planeDims = 2
SpatialDropout.lastForward = true -- backward belongs to the last forward, whatever tensor holds the input

--- p (0.5): probability that a plane is dropped. stochasticInference: drops in evaluate mode too.
function SpatialDropout:__init(p, stochasticInference)
   nn.Module.__init(self)
   self.p = p or 0.5
   self.train = true
   self.stochastic_inference = stochasticInference or false
   self.noise = torch.Tensor()
end

-- Planes lie in the last planeDims dimensions.
function SpatialDropout:compute(input)
   if self.train == false and not self.stochastic_inference then return input * (1 - self.p) end
   local sizes, d = {}, input:dim()
   for i = 1, d do sizes[i] = i <= d - self.planeDims and input:size(i) or 1 end
   local noise = input.new(unpack(sizes)):bernoulli(1 - self.p)
   return torch.cmul(input, noise:expandAs(input))
end

--- Changes p.
function SpatialDropout:setp(p)
   self.p = p
end

function SpatialDropout:clearState()
   if self.noise then self.noise:set() end
   return nn.Module.clearState(self)
end

function SpatialDropout:__tostring__()
   return ('%s(%f)'):format(torch.type(self), self.p)
end
