-- Padding: slices of a constant put in at one end of a dimension (or at an index).

local Padding = torch.class('nn.Padding', 'nn.Module')

--- |pad| slices of value (0) along dim: at the end where pad > 0, at the front where pad < 0. nInputDim: the dimensions of one sample.
-- index (1): how far from that end they go in.
function Padding:__init(dim, pad, nInputDim, value, index)
   nn.Module.__init(self)
   self.value = value or 0
   self.index = index or 1
   self.dim = dim
   self.pad = pad
   self.nInputDim = nInputDim
   self.outputSize = torch.LongStorage()
end

function Padding:compute(input)
   local dim, n = self.dim, math.abs(self.pad)
   if self.nInputDim and input:dim() ~= self.nInputDim then dim = dim + 1 end
   local sizes = {}
   for i = 1, input:dim() do sizes[i] = i == dim and n or input:size(i) end
   local filler = input.new(unpack(sizes)):fill(self.value)
   local total = input:size(dim)
   local before = self.pad > 0 and total - self.index + 1 or self.index - 1
   if before == 0 then return torch.cat({filler, input}, dim) end
   if before == total then return torch.cat({input, filler}, dim) end
   return torch.cat({input:narrow(dim, 1, before), filler, input:narrow(dim, before + 1, total - before)}, dim)
end
