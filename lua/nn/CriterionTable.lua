-- CriterionTable: a criterion as a module that takes {input, target}.

local CriterionTable = torch.class('nn.CriterionTable', 'nn.Module')

function CriterionTable:__init(criterion)
   nn.Module.__init(self)
   self.criterion = criterion
   self.gradInput = {criterion.gradInput}
end

function CriterionTable:updateOutput(input)
   self.output = self.criterion:updateOutput(input[1], input[2])
   return self.output
end

function CriterionTable:updateGradInput(input)
   self.gradInput = {self.criterion:updateGradInput(input[1], input[2])}
   return self.gradInput
end
