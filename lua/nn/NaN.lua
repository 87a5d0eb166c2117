-- NaN: raises as soon as its module takes or makes a NaN, and says which and where.

local NaN = torch.class('nn.NaN', 'nn.Decorator')
local count = 0

--- A number that no other module has.
function NaN.newId()
   count = count + 1
   return count
end

--- id (the next number): what messages call it.
function NaN:__init(module, id)
   nn.Decorator.__init(self, module)
   self.id = id or NaN.newId()
end

--- True when a tensor of nested tables has a NaN.
function NaN:recursiveIsNaN(x)
   if torch.isTensor(x) then
      if x:nElement() == 0 then return false end
      local sum = x:sum()
      return sum ~= sum
   end
   for _, v in pairs(type(x) == 'table' and x or {}) do
      if self:recursiveIsNaN(v) then return true end
   end
   return false
end

local function check(self, x, what)
   if self:recursiveIsNaN(x) then error(('NaN found in %s of module :\n%s'):format(what, self:__tostring__()), 0) end
end

function NaN:updateOutput(input)
   self.output = self.modules[1]:updateOutput(input)
   if self:recursiveIsNaN(self.output) then
      check(self, input, 'input')
      check(self, (self:parameters()), 'parameters')
      check(self, self.output, 'output')
   end
   return self.output
end

function NaN:updateGradInput(input, gradOutput)
   self.gradInput = self.modules[1]:updateGradInput(input, gradOutput)
   if self:recursiveIsNaN(self.gradInput) then
      check(self, gradOutput, 'gradOutput')
      check(self, self.gradInput, 'gradInput')
   end
   return self.gradInput
end

function NaN:accGradParameters(input, gradOutput, scale)
   self.modules[1]:accGradParameters(input, gradOutput, scale)
   local _, grads = self:parameters()
   check(self, grads, 'gradParameters')
end

function NaN:__tostring__()
   return ('%s(%s) @ %s'):format(torch.type(self), self.id, tostring(self.modules[1]))
end
