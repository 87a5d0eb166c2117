-- Profile: times the passes of its module and prints the sum now and then.

local Profile = torch.class('nn.Profile', 'nn.Decorator')

--- print_interval (100): passes between lines; name: the module's type.
function Profile:__init(module, print_interval, name)
   nn.Decorator.__init(self, module)
   self.print_interval = print_interval or 100
   self.name = name or torch.type(module)
   self.module = module
   self.numFwds, self.numBwds = 0, 0
   self.summedFwdTime, self.summedBwdTime = 0, 0
end

-- Adds the seconds since start to self[sum], counts in self[n], prints and begins again at the interval.
local function count(self, timer, sum, n, what)
   self[sum] = self[sum] + timer:time().real
   self[n] = self[n] + 1
   if self[n] % self.print_interval == 0 then
      print(('%s took %.3f seconds for %d %s passes'):format(self.name, self[sum], self.print_interval, what))
      self[n], self[sum] = 0, 0
   end
end

function Profile:updateOutput(input)
   local timer = torch.Timer()
   self.output = self.modules[1]:updateOutput(input)
   count(self, timer, 'summedFwdTime', 'numFwds', 'forward')
   return self.output
end

function Profile:updateGradInput(input, gradOutput)
   local timer = torch.Timer()
   self.gradInput = self.modules[1]:updateGradInput(input, gradOutput)
   count(self, timer, 'summedBwdTime', 'numBwds', 'backward')
   return self.gradInput
end
