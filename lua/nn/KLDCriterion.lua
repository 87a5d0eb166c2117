-- KLDCriterion: divergence of a diagonal normal from the standard one ({mean, log variance} -> loss; Kingma and Welling, 2014).

local sum = require('relume.core').op.sum
local KLDCriterion = torch.class('nn.KLDCriterion', 'nn.Criterion')

--- sizeAverage (false): mean over all elements, else the sum.
function KLDCriterion:__init(sizeAverage)
   nn.Criterion.__init(self)
   self.sizeAverage = sizeAverage or false
   self.gradInput = {}
end

function KLDCriterion:compute(input)
   local mu, lv = input[1], input[2]
   local e = torch.cmul(mu, mu) + torch.exp(lv) - lv - 1
   local loss = sum(e, {}) * 0.5
   return self.sizeAverage and loss / mu:nElement() or loss
end
