-- MultiCriterion: a weighted sum of criterions of the same input and target.

local tape = require 'nn.tape'
local MultiCriterion, parent = torch.class('nn.MultiCriterion', 'nn.Criterion')

function MultiCriterion:__init()
   parent.__init(self)
   self.criterions = {}
   self.weights = torch.DoubleStorage()
end

--- Appends a criterion with a weight (1).
function MultiCriterion:add(criterion, weight)
   assert(criterion, 'no criterion provided')
   weight = weight or 1
   table.insert(self.criterions, criterion)
   self.weights:resize(#self.criterions, true)
   self.weights[#self.criterions] = weight
   return self
end

function MultiCriterion:updateOutput(input, target)
   local loss = 0
   for i = 1, #self.criterions do
      loss = loss + self.criterions[i]:updateOutput(input, target) * self.weights[i]
   end
   self.output = loss
   return loss
end

-- sum + w * x, nested tables included; the first call copies.
local function add(sum, w, x, first)
   if type(x) == 'table' then
      for k = 1, #x do sum[k] = add(sum[k], w, x[k], first) end
      return sum
   end
   return first and sum:mul(w) or sum:add(w, x)
end

function MultiCriterion:updateGradInput(input, target)
   for i = 1, #self.criterions do
      local d = self.criterions[i]:updateGradInput(input, target)
      if i == 1 then self.gradInput = tape.addInto(self.gradInput, d, true) end
      self.gradInput = add(self.gradInput, self.weights[i], d, i == 1)
   end
   return self.gradInput
end

function MultiCriterion:type(type)
   for _, criterion in ipairs(self.criterions) do criterion:type(type) end
   return parent.type(self, type)
end
