-- SpatialFractionalMaxPooling (Graham, 2014): largest value of windows at random places that shrink the image by any factor.

local conv, regions = require 'nn.conv', require 'nn.regions'
local op = require('relume.core').op
local SpatialFractionalMaxPooling = torch.class('nn.SpatialFractionalMaxPooling', 'nn.Module')

SpatialFractionalMaxPooling.lastForward = true -- backward belongs to the last forward's places

--- Windows poolSizeW x poolSizeH. arg1, arg2: output width and height (whole numbers from 1) or ratios of the input's (below 1).
function SpatialFractionalMaxPooling:__init(poolSizeW, poolSizeH, arg1, arg2)
   nn.Module.__init(self)
   assert(poolSizeW >= 2 and poolSizeH >= 2, '[SpatialFractionalMaxPooling] window; need at least 2 x 2')
   self.poolSizeW, self.poolSizeH = poolSizeW, poolSizeH
   if arg1 >= 1 and arg2 >= 1 then
      self.outW, self.outH = arg1, arg2
   elseif arg1 < 1 and arg2 < 1 and arg1 > 0 and arg2 > 0 then
      self.ratioW, self.ratioH = arg1, arg2
   else
      error '[SpatialFractionalMaxPooling] sizes; need two whole numbers or two ratios below 1'
   end
   self.newRandomPool = true
end

--- The places drawn now stay for every later forward.
function SpatialFractionalMaxPooling:fixPoolingRegions(val)
   self.newRandomPool = not (val == nil or val)
   return self
end

-- One sample a plane and dimension.
function SpatialFractionalMaxPooling:samples(x)
   local planes = x:size(1) * x:size(2)
   local r = self.randomSamples
   if self.newRandomPool or not r or r:size(1) ~= planes then
      r = op.rand({planes, x:dim() - 2}, (x:type():match 'torch%.(%a+)Tensor'))
      self.randomSamples = r
   end
   return r
end

local function axis(x, d, out, ratio, size, samples, i)
   local n = x:size(d)
   out = out or math.floor(n * ratio)
   if out + size - 1 > n then
      error(('[FractionalMaxPooling] output; got %d windows of %d, need fewer in %d'):format(out, size, n), 0)
   end
   return regions.fractional(n, out, size, samples:select(2, i))
end
SpatialFractionalMaxPooling.axis = axis

function SpatialFractionalMaxPooling:compute(input)
   local x, single = conv.batch(input, 3)
   local r = self:samples(x)
   return conv.unbatch(regions.max(x, {axis(x, 3, self.outH, self.ratioH, self.poolSizeH, r, 2),
      axis(x, 4, self.outW, self.ratioW, self.poolSizeW, r, 1)}), single)
end

function SpatialFractionalMaxPooling:__tostring__()
   return ('%s(%sx%s, %dx%d)'):format(torch.type(self), self.outW or self.ratioW, self.outH or self.ratioH, self.poolSizeW, self.poolSizeH)
end
