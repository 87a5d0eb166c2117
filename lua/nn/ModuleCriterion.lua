-- ModuleCriterion: a criterion behind modules that change its input and its target.

local ModuleCriterion = torch.class('nn.ModuleCriterion', 'nn.Criterion')

--- inputModule and targetModule may be nil; castTarget (true): targetModule follows type conversions. Parameters are not updated.
function ModuleCriterion:__init(criterion, inputModule, targetModule, castTarget)
   nn.Criterion.__init(self)
   self.criterion = criterion
   self.inputModule, self.targetModule = inputModule, targetModule
   self.castTarget = castTarget == nil or castTarget
end

function ModuleCriterion:updateOutput(input, target)
   if self.inputModule then self.input = self.inputModule:forward(input) end
   if self.targetModule then self.target = self.targetModule:forward(target) end
   self.output = self.criterion:forward(self.input or input, self.target or target)
   return self.output
end

function ModuleCriterion:updateGradInput(input, target)
   local g = self.criterion:backward(self.input or input, self.target or target)
   self.gradInput = self.inputModule and self.inputModule:backward(input, g) or g
   return self.gradInput
end

function ModuleCriterion:type(type, tensorCache)
   local targetModule, target = self.targetModule, self.target
   if not self.castTarget then self.targetModule, self.target = nil, nil end
   nn.Criterion.type(self, type, tensorCache)
   self.targetModule, self.target = targetModule, target
   return self
end
