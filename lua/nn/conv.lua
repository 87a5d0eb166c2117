-- What the spatial convolutions share: initialisation and text.

local unsqueeze = require('relume.core').op.unsqueeze
local conv = {}

--- New random weight and bias, uniform within 1 / sqrt(fanIn); stdv: their standard deviation.
function conv.reset(self, fanIn, stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(fanIn)
   self.weight:uniform(-stdv, stdv)
   if self.bias then self.bias:uniform(-stdv, stdv) end
   return self
end

--- Takes the bias away.
function conv.noBias(self)
   self.bias = nil
   self.gradBias = nil
   return self
end

--- 'nn.X(in -> out, kWxkH, dW,dH, padW,padH)'; extra is put in before the parenthesis.
function conv.tostring(self, extra)
   local s = ('%s(%d -> %d, %dx%d'):format(torch.type(self), self.nInputPlane, self.nOutputPlane, self.kW, self.kH)
   local padW, padH = self.padW or 0, self.padH or 0
   if self.dW ~= 1 or self.dH ~= 1 or padW ~= 0 or padH ~= 0 then s = s .. (', %d,%d'):format(self.dW, self.dH) end
   if padW ~= 0 or padH ~= 0 then s = s .. ', ' .. padW .. ',' .. padH end
   return s .. (extra or '') .. (self.bias and ')' or ') without bias')
end

--- The batch form of one sample: dim dimensions become dim + 1. Returns x and whether it was one sample.
function conv.batch(x, dim)
   if x:dim() == dim + 1 then return x, false end
   if x:dim() ~= dim then
      error(('%dD or %dD (batch mode) tensor expected; got %dD'):format(dim, dim + 1, x:dim()), 0)
   end
   return unsqueeze(x, 0), true
end

--- What a transposed convolution's output needs beyond (size - 1) stride - 2 pad + kernel to have the target's size.
function conv.adjust(target, size, stride, kernel, pad)
   return target - ((size - 1) * stride - 2 * pad + kernel)
end

--- Undoes batch.
function conv.unbatch(y, single)
   return single and y:select(1, 1) or y
end

return conv
