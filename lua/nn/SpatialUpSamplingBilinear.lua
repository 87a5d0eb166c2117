-- SpatialUpSamplingBilinear: an image enlarged, pixels between by bilinear interpolation, corners kept.

local conv, resample = require 'nn.conv', require 'nn.resample'
local SpatialUpSamplingBilinear = torch.class('nn.SpatialUpSamplingBilinear', 'nn.Module')

--- params: a whole factor, or {oheight = , owidth = }.
function SpatialUpSamplingBilinear:__init(params)
   nn.Module.__init(self)
   if type(params) == 'table' then
      self.oheight, self.owidth = params.oheight, params.owidth
      if not (self.oheight and self.owidth) then error '[SpatialUpSamplingBilinear] params; need oheight and owidth' end
   else
      self.scale_factor = params
      if params < 1 then error 'scale_factor must be greater than 1' end
      if math.floor(params) ~= params then error 'scale_factor must be integer' end
   end
   self.inputSize, self.outputSize = torch.LongStorage(4), torch.LongStorage(4)
end

function SpatialUpSamplingBilinear:compute(input)
   local x, single = conv.batch(input, 3)
   local scale = self.scale_factor
   local y = resample.linear(x, 2, self.oheight or x:size(3) * scale)
   return conv.unbatch(resample.linear(y, 3, self.owidth or x:size(4) * scale), single)
end
