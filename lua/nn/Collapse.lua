-- Collapse: merges the last dimensions of a sample into one.

local Collapse = torch.class('nn.Collapse', 'nn.Module')

--- nInputDim: how many trailing dimensions are merged.
function Collapse:__init(nInputDim)
   nn.Module.__init(self)
   self.nInputDim = nInputDim
end

function Collapse:compute(input)
   local sizes, keep = {}, input:dim() - self.nInputDim
   for i = 1, keep do sizes[i] = input:size(i) end
   sizes[keep + 1] = -1
   return input:contiguous():view(unpack(sizes))
end
