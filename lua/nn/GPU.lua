-- GPU: a module that belongs on one device. Here, where tensors are on the CPU, it passes everything on.

local GPU = torch.class('nn.GPU', 'nn.Container')

--- device: the module's; outdevice (device): where the output is to be.
function GPU:__init(module, device, outdevice)
   nn.Container.__init(self)
   assert(type(device) == 'number', '[GPU] device; need a number')
   assert(torch.isTypeOf(module, 'nn.Module'), '[GPU] module; need an nn.Module')
   self.device = device
   self.outdevice = outdevice or device
   self.modules[1] = module
end

--- Says which device the module belongs on.
function GPU:setDevice(device)
   self.device = device or self.device
   return self
end

for _, name in ipairs {'updateOutput', 'updateGradInput', 'accGradParameters', 'accUpdateGradParameters', 'sharedAccUpdateGradParameters'} do
   GPU[name] = nn.Decorator[name]
end

function GPU:__tostring__()
   return ('%s(%d) @ %s'):format(torch.type(self), self.device, tostring(self.modules[1]))
end
