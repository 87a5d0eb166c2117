-- DepthConcat: like Concat, for outputs of different sizes: all but the joined dimension are centred in zeros.

local tape = require 'nn.tape'
local DepthConcat = torch.class('nn.DepthConcat', 'nn.Concat')

--- The part of output, offset along the joined dimension, where currentOutput belongs.
function DepthConcat:windowNarrow(output, currentOutput, offset)
   local window = output:narrow(self.dimension, offset, currentOutput:size(self.dimension))
   for dim = 1, output:dim() do
      local n = currentOutput:size(dim)
      if dim ~= self.dimension and output:size(dim) ~= n then
         window = window:narrow(dim, math.floor((output:size(dim) - n) / 2 + 1), n)
      end
   end
   return window
end

function DepthConcat:updateOutput(input)
   local outs, size = {}, nil
   for i = 1, #self.modules do
      local out = self.modules[i]:updateOutput(input)
      outs[i] = out
      local s = out:size():totable()
      if not size then
         size = s
      else
         for d = 1, #s do
            size[d] = d == self.dimension and size[d] + s[d] or math.max(size[d], s[d])
         end
      end
   end
   local output, offset = outs[1].new(unpack(size)):zero(), 1
   for i = 1, #outs do
      self:windowNarrow(output, outs[i], offset):copy(outs[i])
      offset = offset + outs[i]:size(self.dimension)
   end
   self.output = tape.keep(self.output, output)
   return self.output
end

local function run(self, method, input, gradOutput, scale)
   local offset, gradInput = 1, self.gradInput
   for i = 1, #self.modules do
      local module = self.modules[i]
      local d = module[method](module, input, self:windowNarrow(gradOutput, module.output, offset), scale)
      offset = offset + module.output:size(self.dimension)
      gradInput = tape.addInto(gradInput, d, i == 1)
   end
   self.gradInput = gradInput
   return gradInput
end

function DepthConcat:updateGradInput(input, gradOutput)
   return run(self, 'updateGradInput', input, gradOutput)
end

function DepthConcat:backward(input, gradOutput, scale)
   return run(self, 'backward', input, gradOutput, scale or 1)
end

local function acc(self, method, input, gradOutput, scale)
   local offset = 1
   for i = 1, #self.modules do
      local module = self.modules[i]
      module[method](module, input, self:windowNarrow(gradOutput, module.output, offset), scale)
      offset = offset + module.output:size(self.dimension)
   end
end

function DepthConcat:accGradParameters(input, gradOutput, scale)
   acc(self, 'accGradParameters', input, gradOutput, scale or 1)
end

function DepthConcat:accUpdateGradParameters(input, gradOutput, lr)
   acc(self, 'accUpdateGradParameters', input, gradOutput, lr)
end
