-- LayerNormalization (Ba et al., 2016) from other modules: each sample less its mean, divided by its norm / sqrt(n), scaled and shifted.

local LayerNormalization = torch.class('nn.LayerNormalization', 'nn.Sequential')

--- nOutput features; bias (0): the shift at first; eps (1e-10); affine (true): learnt scale and shift.
function LayerNormalization:__init(nOutput, bias, eps, affine)
   nn.Sequential.__init(self)
   self:add(nn.ConcatTable():add(nn.Identity()):add(nn.Sum(1, 1, true, false))) -- each sample with its own mean
   self:add(nn.CSubTable())
   self:add(nn.Normalize(2, eps or 1e-10))
   self:add(nn.MulConstant(math.sqrt(nOutput)))
   if affine == nil or affine then
      local gain, shift = nn.CMul(nOutput), nn.Add(nOutput, false)
      gain.weight:fill(1)
      shift.bias:fill(bias or 0)
      self:add(gain):add(shift)
   end
end
