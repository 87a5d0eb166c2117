-- Maxout (Goodfellow et al., 2013): the largest of several linear functions.

local Maxout = torch.class('nn.Maxout', 'nn.Sequential')

--- maxoutNumber functions for each of outputSize outputs.
function Maxout:__init(inputSize, outputSize, maxoutNumber, preprocess)
   nn.Sequential.__init(self)
   if preprocess then self:add(nn.View(-1, inputSize)) end
   self:add(nn.Linear(inputSize, outputSize * maxoutNumber))
   self:add(nn.View(maxoutNumber, outputSize):setNumInputDims(1))
   self:add(nn.Max(1, 2))
end
