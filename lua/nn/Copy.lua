-- Copy: converts the input to another tensor type, and the gradient back.

local Copy = torch.class('nn.Copy', 'nn.Module')

--- intype, outtype: type names (default: the default type). forceCopy: copy even where the types are the same. dontCast: keep the types
-- when the module is converted.
function Copy:__init(intype, outtype, forceCopy, dontCast)
   intype = intype or torch.Tensor.__typename
   outtype = outtype or torch.Tensor.__typename
   self.dontCast = dontCast
   nn.Module.__init(self)
   self.gradInput = torch.getmetatable(intype).new()
   self.output = torch.getmetatable(outtype).new()
   self.forceCopy = forceCopy or intype ~= outtype
   self.intype, self.outtype = intype, outtype
end

function Copy:updateOutput(input)
   if self.forceCopy then
      self.output:resize(input:size()):copy(input)
   else
      self.output = input
   end
   return self.output
end

function Copy:updateGradInput(_, gradOutput)
   if self.forceCopy then
      self.gradInput:resize(gradOutput:size()):copy(gradOutput)
   else
      self.gradInput = gradOutput
   end
   return self.gradInput
end

function Copy:type(type, tensorCache)
   if type and self.dontCast then return self end
   return nn.Module.type(self, type, tensorCache)
end
