-- unet: a diffusion U-Net on 3x32x32 (Ho et al. 2020): group norm, SiLU, attention at 16x16 and 8x8, time embedding, batch 8; AdamW 0.0003.
require 'nngraph'

local function conv(from, to, k, stride)
   local pad = (k - 1) / 2
   return nn.SpatialConvolution(from, to, k, k, stride or 1, stride or 1, pad, pad)
end

-- Group norm, SiLU, convolution, twice; the time t is added between, x beside.
local function residual(x, t, from, to, times)
   local time = nn.View(to, 1, 1)(nn.Linear(times, to)(t))
   local y = nn.CAddTable()({ conv(from, to, 3)(nn.SiLU()(nn.GroupNorm(8, from)(x))), time })
   y = conv(to, to, 3)(nn.SiLU()(nn.GroupNorm(8, to)(y)))
   return nn.CAddTable()({ from == to and x or conv(from, to, 1)(x), y })
end

-- One head over the places of planes of hw x hw.
local function attention(x, planes, hw)
   local qkv = conv(planes, 3 * planes, 1)(nn.GroupNorm(8, planes)(x))
   local y = nn.SelfAttention(1)(nn.Transpose({ 2, 3 })(nn.View(3 * planes, hw * hw)(qkv)))
   return nn.CAddTable()({ x, conv(planes, planes, 1)(nn.View(planes, hw, hw)(nn.Transpose({ 2, 3 })(y))) })
end

local function unet(c, size, times)
   local image, noise = nn.Identity()(), nn.Identity()()
   local t = nn.Linear(times, times)(nn.SiLU()(nn.Linear(64, times)(nn.SinusoidalEmbedding(64)(noise))))
   local h1 = residual(conv(3, c, 3)(image), t, c, c, times)
   local h2 = attention(residual(conv(c, c, 3, 2)(h1), t, c, 2 * c, times), 2 * c, size / 2)
   local y = residual(conv(2 * c, 2 * c, 3, 2)(h2), t, 2 * c, 2 * c, times)
   y = residual(attention(y, 2 * c, size / 4), t, 2 * c, 2 * c, times)
   y = residual(nn.JoinTable(2)({ nn.SpatialUpSamplingNearest(2)(y), h2 }), t, 4 * c, 2 * c, times)
   y = attention(y, 2 * c, size / 2)
   y = residual(nn.JoinTable(2)({ nn.SpatialUpSamplingNearest(2)(y), h1 }), t, 3 * c, c, times)
   return nn.gModule({ image, noise }, { conv(c, 3, 3)(nn.SiLU()(nn.GroupNorm(8, c)(y))) })
end

return function(o)
   o = o or {}
   local batch, size = o.batch or 8, o.size or 32
   local net = unet(o.planes or 64, size, o.times or 256)
   local criterion = nn.MSECriterion()
   local params, grads = net:getParameters()
   local state = { learningRate = 3e-4 }
   local x = { torch.randn(batch, 3, size, size), torch.rand(batch) * 1000 }
   local y = torch.randn(batch, 3, size, size)

   local function feval()
      grads:zero()
      local out = net:forward(x)
      local loss = criterion:forward(out, y)
      net:backward(x, criterion:backward(out, y))
      return loss, grads
   end
   return {
      net = net,
      step = function() return optim.adamw(feval, params, state) end,
      infer = function() return criterion:forward(net:forward(x), y) end,
   }
end
