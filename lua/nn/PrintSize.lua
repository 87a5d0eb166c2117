-- PrintSize: prints the sizes that pass through it.

local PrintSize = torch.class('nn.PrintSize', 'nn.Module')

--- prefix ('PrintSize'): what lines begin with.
function PrintSize:__init(prefix)
   nn.Module.__init(self)
   self.prefix = prefix or 'PrintSize'
end

local function sizeOf(x)
   if x == nil then return 'missing size' end
   return torch.isTensor(x) and x:size() or x
end

function PrintSize:updateOutput(input)
   self.output = input
   print(self.prefix .. ':input\n', sizeOf(input))
   return self.output
end

function PrintSize:updateGradInput(_, gradOutput)
   print(self.prefix .. ':gradOutput\n', sizeOf(gradOutput))
   self.gradInput = gradOutput
   return self.gradInput
end
