-- CMul: the input times a learnt tensor, element by element; sizes of 1 stretch.

local CMul = torch.class('nn.CMul', 'nn.Module')

--- Sizes as numbers or a LongStorage; a missing first (batch) dimension is taken as 1.
function CMul:__init(...)
   nn.Module.__init(self)
   local first = ...
   self.size = torch.typename(first) == 'torch.LongStorage' and first or torch.LongStorage {...}
   self.weight = torch.Tensor(self.size)
   self.gradWeight = torch.Tensor(self.size)
   self.output:resize(self.size)
   self:reset()
end

function CMul:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.weight:nElement())
   self.weight:uniform(-stdv, stdv)
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

function CMul:compute(input, weight)
   local p = fit(weight, input)
   return torch.cmul(input, p:expandAs(input))
end
