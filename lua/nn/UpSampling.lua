-- UpSampling: images (batch, planes, height, width) or volumes (batch, planes, depth, height, width) enlarged.

local resample = require 'nn.resample'
local UpSampling = torch.class('nn.UpSampling', 'nn.Module')

--- params: a whole factor or, for mode 'linear', {odepth = , oheight = , owidth = }; mode: 'nearest' (default) or 'linear'.
function UpSampling:__init(params, mode)
   nn.Module.__init(self)
   self.mode = (mode == 'linear' or mode == 'bilinear' or mode == 'trilinear') and 'linear' or 'nearest'
   if type(params) == 'table' then
      if self.mode == 'nearest' then error 'Nearest neighbour upsampling requires a scale_factor' end
      self.odepth, self.owidth, self.oheight = params.odepth, params.owidth, params.oheight
      if not (self.owidth and self.oheight) then error 'Output height and width parameters are required' end
   else
      self.scale_factor = params
      if params < 1 then error 'scale_factor must be greater than 1' end
      if math.floor(params) ~= params then error 'scale_factor must be integer' end
   end
end

function UpSampling:compute(input)
   local dims, scale = input:dim(), self.scale_factor
   if dims < 4 or dims > 5 then error(('[UpSampling] input; got %d dimensions, need 4 or 5'):format(dims), 0) end
   if dims == 5 and not (scale or self.odepth) then error('[UpSampling] volume; got no odepth, need one', 0) end
   local wanted = dims == 5 and {self.odepth or false, self.oheight or false, self.owidth or false} or {self.oheight or false, self.owidth or false}
   for i = 1, #wanted do
      local d = i + 1
      if self.mode == 'nearest' then
         input = resample.nearest(input, d, scale)
      else
         input = resample.linear(input, d, wanted[i] or input:size(d + 1) * scale)
      end
   end
   return input
end
