-- Index: slices of a tensor by integers ({tensor, indices} -> slices).

local Index = torch.class('nn.Index', 'nn.Module')

function Index:__init(dimension)
   nn.Module.__init(self)
   self.dimension = dimension
   self.gradInput = {self.gradInput, self.gradInput.new()}
end

function Index:compute(input)
   return input[1]:index(self.dimension, input[2])
end

function Index:clearState()
   self.gradInput[1]:set()
   self.gradInput[2]:set()
   self.output:set()
   return self
end
