-- CAddTensorTable: adds a tensor to each tensor of a table ({x, {a, b ...}} -> {x + a, x + b ...}).

local CAddTensorTable = torch.class('nn.CAddTensorTable', 'nn.Module')

function CAddTensorTable:__init()
   nn.Module.__init(self)
   self.gradInput = {}
end

function CAddTensorTable:compute(input)
   local x, list, sums = input[1], input[2], {}
   for i = 1, #list do sums[i] = list[i] + x end
   return sums
end
