-- CAdd: a learnt tensor added to the input; sizes of 1 stretch.

local CAdd = torch.class('nn.CAdd', 'nn.Module')

--- Sizes as numbers or a LongStorage; a missing first (batch) dimension is taken as 1.
function CAdd:__init(...)
   nn.Module.__init(self)
   local first = ...
   self.size = torch.typename(first) == 'torch.LongStorage' and first or torch.LongStorage {...}
   self.bias = torch.Tensor(self.size)
   self.gradBias = torch.Tensor(self.size)
   self.output:resize(self.size)
   self:reset()
end

function CAdd:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.bias:nElement())
   self.bias:uniform(-stdv, stdv)
end

-- The parameter with as many dimensions as the input, 1 in front.
local function fit(p, input)
   if p:dim() == input:dim() then return p end
   if p:nElement() == input:nElement() then return p:viewAs(input) end
   local sizes, extra = {}, input:dim() - p:dim()
   for i = 1, extra do sizes[i] = 1 end
   for i = 1, p:dim() do sizes[extra + i] = p:size(i) end
   return p:view(unpack(sizes))
end

function CAdd:compute(input, _, bias)
   local p = fit(bias, input)
   return input + p:expandAs(input)
end
