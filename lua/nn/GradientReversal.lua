-- GradientReversal (Ganin and Lempitsky, 2014): the identity whose gradient is multiplied by -lambda.

local GradientReversal = torch.class('nn.GradientReversal', 'nn.Module')

function GradientReversal:__init(lambda)
   nn.Module.__init(self)
   self.lambda = lambda or 1
end

--- Changes lambda.
function GradientReversal:setLambda(lambda)
   self.lambda = lambda
end

function GradientReversal:updateOutput(input)
   self.output:set(input)
   return self.output
end

function GradientReversal:updateGradInput(_, gradOutput)
   self.gradInput:resizeAs(gradOutput):copy(gradOutput):mul(-self.lambda)
   return self.gradInput
end
