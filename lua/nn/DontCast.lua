-- DontCast: a module that keeps its tensor type when the network around it is converted.

local DontCast = torch.class('nn.DontCast', 'nn.Decorator')

-- Type of the first tensor of nested tables.
local function typeOf(x)
   if torch.isTensor(x) then return x:type() end
   if type(x) == 'table' then
      for _, v in pairs(x) do
         local t = typeOf(v)
         if t then return t end
      end
   end
end

-- Nested tables with their tensors converted.
local function cast(x, wanted)
   if torch.isTensor(x) then return x:type() == wanted and x or x:type(wanted) end
   if type(x) ~= 'table' then return x end
   local r = {}
   for k, v in pairs(x) do r[k] = cast(v, wanted) end
   return r
end

--- castin: inputs are converted to the module's type; castout (castin): outputs to the type that this module was converted to; moduleType:
-- the module's type where its output and parameters do not show it.
function DontCast:__init(module, castin, castout, moduleType)
   nn.Decorator.__init(self, module)
   self.castin = castin
   self.castout = castout == nil and castin or castout
   self.moduleType = moduleType
   if (castin or self.castout) and not moduleType then
      self.moduleType = typeOf(module.output) or typeOf((module:parameters()))
      if not self.moduleType then error 'Cannot extrapolate moduleType. Provide constructor argument 4' end
   end
   self.outerType = torch.getdefaulttensortype()
end

function DontCast:updateOutput(input)
   local y = self.modules[1]:updateOutput(self.castin and cast(input, self.moduleType) or input)
   self.output = self.castout and cast(y, self.outerType) or y
   return self.output
end

function DontCast:updateGradInput(input, gradOutput)
   local g = self.modules[1]:updateGradInput(self.castin and cast(input, self.moduleType) or input,
      self.castout and cast(gradOutput, self.moduleType) or gradOutput)
   self.gradInput = self.castin and cast(g, typeOf(input)) or g
   return self.gradInput
end

function DontCast:accGradParameters(input, gradOutput, scale)
   self.modules[1]:accGradParameters(self.castin and cast(input, self.moduleType) or input,
      self.castout and cast(gradOutput, self.moduleType) or gradOutput, scale)
end

function DontCast:accUpdateGradParameters(input, gradOutput, lr)
   self.modules[1]:accUpdateGradParameters(self.castin and cast(input, self.moduleType) or input,
      self.castout and cast(gradOutput, self.moduleType) or gradOutput, lr)
end

--- Only what this module gives changes its type.
function DontCast:type(type)
   if not type then return self._type end
   if self.castout then
      self.outerType, self._type = type, type
      self.output = cast(self.output, type)
   end
   if self.castin then self.gradInput = cast(self.gradInput, type) end
   return self
end
