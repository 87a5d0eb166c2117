-- StochasticGradient: trains a module on a dataset, one example at a time.

local StochasticGradient = torch.class('nn.StochasticGradient')

function StochasticGradient:__init(module, criterion)
   self.learningRate = 0.01
   self.learningRateDecay = 0
   self.maxIteration = 25
   self.shuffleIndices = true
   self.module = module
   self.criterion = criterion
   self.verbose = true
end

--- dataset:size() examples, dataset[i] = {input, target}. Hooks: hookExample(self, example), hookIteration(self, iteration, error).
function StochasticGradient:train(dataset)
   local iteration, rate = 1, self.learningRate
   local module, criterion = self.module, self.criterion
   local order = torch.randperm(dataset:size())
   if not self.shuffleIndices then
      for t = 1, dataset:size() do order[t] = t end
   end
   if self.verbose then print('# StochasticGradient: training') end
   while true do
      local total = 0
      for t = 1, dataset:size() do
         local example = dataset[order[t]]
         local input, target = example[1], example[2]
         total = total + criterion:forward(module:forward(input), target)
         module:updateGradInput(input, criterion:updateGradInput(module.output, target))
         module:accUpdateGradParameters(input, criterion.gradInput, rate)
         if self.hookExample then self.hookExample(self, example) end
      end
      total = total / dataset:size()
      if self.hookIteration then self.hookIteration(self, iteration, total) end
      if self.verbose then print('# current error = ' .. total) end
      iteration = iteration + 1
      rate = self.learningRate / (1 + iteration * self.learningRateDecay)
      if self.maxIteration > 0 and iteration > self.maxIteration then
         if self.verbose then print('# StochasticGradient: you have reached the maximum number of iterations\n# training error = ' .. total) end
         break
      end
   end
end
