-- OneHot: class numbers as rows with a 1 ((...) whole numbers from 1 -> (..., outputSize)).

local op = require('relume.core').op
local OneHot = torch.class('nn.OneHot', 'nn.Module')

function OneHot:__init(outputSize)
   nn.Module.__init(self)
   self.outputSize = outputSize
end

function OneHot:updateOutput(input)
   local kind = self._type:match 'torch%.(%a+)Tensor'
   local n = self.outputSize
   local x = type(input) == 'number' and torch.LongTensor {input} or op.cast(input, 'Long')
   if x:nElement() > 0 and (x:min() < 1 or x:max() > n) then
      error(('[OneHot] class; got %d to %d, need 1 to %d'):format(x:min(), x:max(), n), 0)
   end
   local y = op.cast(op.eq(op.unsqueeze(x, x:dim()), op.add(op.iota(n, 'Long'), 1)), kind)
   self.output:set(type(input) == 'number' and y:view(n) or y)
   return self.output
end

function OneHot:updateGradInput(input)
   if type(input) == 'number' then return 0 end
   self.gradInput:resize(input:size()):zero()
   return self.gradInput
end
