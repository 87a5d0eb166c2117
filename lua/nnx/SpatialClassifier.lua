-- SpatialClassifier: a classifier of rows, applied at every pixel ((planes, h, w) -> (classes, h, w)).

local SpatialClassifier = torch.class('nn.SpatialClassifier', 'nn.Container')

function SpatialClassifier:__init(classifier)
   nn.Container.__init(self)
   self.classifier, self.spatialOutput = classifier or nn.Sequential(), true
   self.modules[1] = self.classifier
end

--- Appends a module to the classifier.
function SpatialClassifier:add(module)
   self.classifier:add(module)
   return self
end

-- (planes, h, w) -> a row for each pixel.
local function rows(x)
   return x:contiguous():view(x:size(1), x:size(2) * x:size(3)):t():contiguous()
end

-- Rows -> (columns, h, w).
local function image(y, h, w)
   return y:t():contiguous():view(y:size(2), h, w)
end

function SpatialClassifier:updateOutput(input)
   if input:dim() ~= 3 then error(('[SpatialClassifier] input; got %d dimensions, need 3'):format(input:dim()), 2) end
   self.inputT = rows(input)
   local y = self.classifier:updateOutput(self.inputT)
   self.output = self.spatialOutput and image(y, input:size(2), input:size(3)) or y
   return self.output
end

function SpatialClassifier:updateGradInput(input, gradOutput)
   self.gradOutputT = self.spatialOutput and rows(gradOutput) or gradOutput
   self.gradInput = image(self.classifier:updateGradInput(self.inputT, self.gradOutputT), input:size(2), input:size(3))
   return self.gradInput
end

function SpatialClassifier:accGradParameters(_, gradOutput, scale)
   self.classifier:accGradParameters(self.inputT, self.spatialOutput and rows(gradOutput) or gradOutput, scale)
end
