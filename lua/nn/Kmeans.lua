-- Kmeans: clusters whose centres are learnt by gradient steps ((batch, dim) -> number of the nearest centre).

local Kmeans = torch.class('nn.Kmeans', 'nn.Module')

--- k centres of dim numbers; scale: replaces the scale that accGradParameters is given.
function Kmeans:__init(k, dim, scale)
   nn.Module.__init(self)
   assert(k > 0, 'Clusters cannot be 0 or negative.')
   assert(dim > 0, 'Dimensionality cannot be 0 or negative.')
   self.k, self.dim, self.scale = k, dim, scale
   self.weight, self.gradWeight = torch.Tensor(k, dim), torch.Tensor(k, dim):zero()
   self.loss = 0
   self.clusterSampleCount = torch.Tensor(k):zero()
   self:reset()
end

function Kmeans:reset(stdev)
   stdev = stdev or 1
   self.weight:uniform(-stdev, stdev)
end

local function checkInput(self, input)
   assert(input:dim() == 2, 'Incorrect input dimensionality. Expecting 2D.')
   assert(input:size(2) == self.dim, "Dimensionality of input and weight don't match.")
end

--- Centres are samples drawn at random.
function Kmeans:initRandom(input)
   checkInput(self, input)
   assert(input:size(1) >= self.k, 'Need atleast k samples for initialization.')
   for i = 1, self.k do self.weight[i]:copy(input[torch.random(1, input:size(1))]) end
end

-- Squared distances (batch, centres).
local function distances(input, centres)
   local n, k, d = input:size(1), centres:size(1), input:size(2)
   local diff = input:contiguous():view(n, 1, d):expand(n, k, d) - centres:contiguous():view(1, k, d):expand(n, k, d)
   return torch.pow(diff, 2):sum(3):view(n, k)
end

--- Each next centre is a sample far from those before: one of the (1 - p) farthest; p (0.95).
function Kmeans:initKmeansPlus(input, p)
   checkInput(self, input)
   self.p = p or self.p or 0.95
   assert(self.p >= 0 and self.p <= 1, 'P value should be between 0-1.')
   local n = input:size(1)
   local far = math.max(1, math.ceil((1 - self.p) * n))
   self.weight[1]:copy(input[torch.random(n)])
   for k = 2, self.k do
      local nearest = torch.min(distances(input, self.weight:narrow(1, 1, k - 1)), 2):view(n)
      local _, order = torch.sort(nearest, 1, true)
      self.weight[k]:copy(input[order[torch.random(far)]])
   end
end

--- Also sets loss, the sum of squared distances to the nearest centres.
function Kmeans:updateOutput(input)
   checkInput(self, input)
   local least, index = torch.min(distances(input, self.weight), 2)
   self.nearest = index:view(-1)
   self.output:resize(input:size(1)):copy(self.nearest)
   self.loss = least:sum()
   return self.output
end

function Kmeans:updateGradInput(input)
   self.gradInput:resize(input:size()):zero()
   return self.gradInput
end

-- A step of 1 moves a centre to the mean of its samples.
function Kmeans:accGradParameters(input, _, scale)
   scale = self.scale or scale or 1
   assert(scale > 0, ' Scale has to be positive.')
   local n, nearest = input:size(1), self.nearest
   self.clusterSampleCount:zero():indexAdd(1, nearest, self.weight.new(n):fill(1))
   local g = self.gradWeight:clone():zero():indexAdd(1, nearest, self.weight:index(1, nearest) - input)
   local counts = torch.cmax(self.clusterSampleCount, 1):view(self.k, 1):expandAs(g)
   self.gradWeight:add(scale, torch.cdiv(g, counts))
end

function Kmeans:clearState()
   self.nearest = nil
   return nn.Module.clearState(self)
end

function Kmeans:type(type, tensorCache)
   self.nearest = nil
   return nn.Module.type(self, type, tensorCache)
end
