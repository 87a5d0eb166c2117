-- ParallelCriterion: a weighted sum of criterions, each of its own input and target ({x1, x2}, {t1, t2} -> loss).

local tape = require 'nn.tape'
local ParallelCriterion, parent = torch.class('nn.ParallelCriterion', 'nn.Criterion')

--- repeatTarget: every criterion gets the whole target.
function ParallelCriterion:__init(repeatTarget)
   parent.__init(self)
   self.criterions = {}
   self.weights = {}
   self.gradInput = {}
   self.repeatTarget = repeatTarget
end

--- Appends a criterion with a weight (1).
function ParallelCriterion:add(criterion, weight)
   assert(criterion, 'no criterion provided')
   table.insert(self.criterions, criterion)
   table.insert(self.weights, weight or 1)
   return self
end

function ParallelCriterion:updateOutput(input, target)
   local loss = 0
   for i = 1, #self.criterions do
      local t = self.repeatTarget and target or target[i]
      loss = loss + self.criterions[i]:updateOutput(input[i], t) * self.weights[i]
   end
   self.output = loss
   return loss
end

-- x times w, nested tables included.
local function scale(x, w)
   if type(x) ~= 'table' then return x:mul(w) end
   for k = 1, #x do scale(x[k], w) end
   return x
end

function ParallelCriterion:updateGradInput(input, target)
   local gradInput = self.gradInput
   for i = 1, #self.criterions do
      local t = self.repeatTarget and target or target[i]
      local d = self.criterions[i]:updateGradInput(input[i], t)
      gradInput[i] = scale(tape.addInto(gradInput[i], d, true), self.weights[i])
   end
   return gradInput
end

function ParallelCriterion:type(type, tensorCache)
   self.gradInput = {}
   return parent.type(self, type, tensorCache)
end
