-- Volumetric layers against their definitions element by element; gradients by differences; unpooling.
local check = require 'support.module_check'

local function sizes(t) return t:size():totable() end

-- Value of x (planes, time, height, width) at plane c, or `outside`.
local function at(x, c, t, h, w, outside)
   if t < 1 or h < 1 or w < 1 or t > x:size(2) or h > x:size(3) or w > x:size(4) then return outside end
   return x[c][t][h][w]
end

-- Calls f(plane position ...) for the elements of the window of m at output position t, h, w.
local function window(m, t, h, w, f)
   for i = 0, m.kT - 1 do
      for j = 0, m.kH - 1 do
         for k = 0, m.kW - 1 do
            f((t - 1) * m.dT - m.padT + i * (m.dilationT or 1) + 1, (h - 1) * m.dH - m.padH + j * (m.dilationH or 1) + 1,
               (w - 1) * m.dW - m.padW + k * (m.dilationW or 1) + 1, i + 1, j + 1, k + 1)
         end
      end
   end
end

local function each(y, f)
   for c = 1, y:size(1) do
      for t = 1, y:size(2) do
         for h = 1, y:size(3) do
            for w = 1, y:size(4) do f(c, t, h, w) end
         end
      end
   end
end

describe('volumetric layers', function()
   before_each(function() torch.manualSeed(61) end)

   it('nn.VolumetricConvolution and its dilated form', function()
      for _, m in ipairs {nn.VolumetricConvolution(2, 3, 2, 3, 2), nn.VolumetricConvolution(2, 2, 3, 2, 3, 2, 1, 2, 1, 0, 1),
         nn.VolumetricDilatedConvolution(1, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 2, 1, 2)} do
         local x = torch.randn(m.nInputPlane, 4, 4, 5)
         local y = m:forward(x)
         each(y, function(o, t, h, w)
            local sum = m.bias[o]
            for c = 1, m.nInputPlane do
               window(m, t, h, w, function(a, b, d, i, j, k) sum = sum + m.weight[o][c][i][j][k] * at(x, c, a, b, d, 0) end)
            end
            assert.near(y[o][t][h][w], sum, 1e-10)
         end)
         check.batch(m, torch.randn(2, m.nInputPlane, 4, 4, 5))
      end
      check.module(nn.VolumetricConvolution(2, 2, 2, 2, 2, 2, 1, 1, 1, 0, 1), torch.randn(1, 2, 3, 3, 3))
      check.module(nn.VolumetricDilatedConvolution(1, 2, 2, 2, 2, 1, 1, 1, 0, 0, 0, 2, 1, 1), torch.randn(1, 3, 3, 2))
      assert.equal('nn.VolumetricConvolution(2 -> 3, 2x3x2)', tostring(nn.VolumetricConvolution(2, 3, 2, 3, 2)))
      assert.error_matches(function() nn.VolumetricConvolution(2, 3, 5, 1, 1):forward(torch.randn(2, 4, 4, 4)) end, 'need at least the kernel')
   end)

   it('nn.VolumetricFullConvolution is the gradient of a convolution', function()
      for _, a in ipairs {{2, 3, 2, 2, 3}, {2, 2, 3, 2, 2, 2, 2, 1, 1, 0, 0, 1, 1, 0}} do
         local m, x = nn.VolumetricFullConvolution(unpack(a)), torch.randn(1, 2, 3, 2, 2)
         m.bias:zero()
         local y = m:forward(x)
         local c = nn.VolumetricConvolution(m.nOutputPlane, m.nInputPlane, m.kT, m.kW, m.kH, m.dT, m.dW, m.dH, m.padT, m.padW, m.padH):noBias()
         c.weight:copy(m.weight)
         local input = torch.randn(unpack(sizes(y)))
         c:forward(input)
         assert.near(c:backward(input, x), y, 1e-10)
         m:reset()
         check.module(m, x)
      end
   end)

   it('nn.VolumetricMaxPooling, dilated, padded, rounded up', function()
      for _, m in ipairs {nn.VolumetricMaxPooling(2, 2, 3), nn.VolumetricMaxPooling(3, 2, 2, 2, 1, 2, 1, 1, 0):ceil(),
         nn.VolumetricDilatedMaxPooling(2, 2, 2, 1, 1, 1, 0, 0, 0, 2, 1, 2)} do
         local x = torch.randn(2, 4, 5, 5)
         local y = m:forward(x)
         each(y, function(c, t, h, w)
            local best = -math.huge
            window(m, t, h, w, function(a, b, d) best = math.max(best, at(x, c, a, b, d, -math.huge)) end)
            assert.equal(best, y[c][t][h][w])
         end)
         check.batch(m, torch.randn(2, 2, 4, 5, 5))
      end
      check.module(nn.VolumetricMaxPooling(2, 2, 2, 1, 1, 1), torch.randn(1, 2, 3, 3, 3))
   end)

   it('nn.VolumetricAveragePooling', function()
      local m, x = nn.VolumetricAveragePooling(2, 3, 2, 1, 2, 1), torch.randn(2, 3, 4, 5)
      local y = check.module(m, x)
      each(y, function(c, t, h, w)
         local sum = 0
         m.padT, m.padH, m.padW = 0, 0, 0
         window(m, t, h, w, function(a, b, d) sum = sum + x[c][a][b][d] end)
         assert.near(y[c][t][h][w], sum / 12, 1e-12)
      end)
      local padded = nn.VolumetricAveragePooling(2, 2, 2, 2, 2, 2, 1, 1, 1):setCountExcludePad()
      assert.near(padded:forward(torch.ones(1, 2, 2, 2)), torch.ones(1, 2, 2, 2), 1e-12)
   end)

   it('unpooling puts values back', function()
      local pool = nn.SpatialMaxPooling(2, 2)
      local unpool, x = nn.SpatialMaxUnpooling(pool), torch.randn(1, 2, 4, 6)
      local y = pool:forward(x):clone()
      local z = unpool:forward(y):clone()
      assert.near(z:sum(), y:sum(), 1e-12)
      assert.near(torch.cmul(z, z:ne(0):double()), torch.cmul(x, z:ne(0):double()), 0)
      pool:forward(x)
      check.module(unpool, y, {noFloat = true})
      local deep = nn.VolumetricMaxPooling(2, 2, 2)
      local back, v = nn.VolumetricMaxUnpooling(deep), torch.randn(2, 2, 4, 4)
      local small = deep:forward(v):clone()
      local big = back:forward(small)
      assert.same({2, 2, 4, 4}, sizes(big))
      assert.near(torch.cmul(big, big:ne(0):double()), torch.cmul(v, big:ne(0):double()), 0)
      assert.equal(small:nElement(), big:ne(0):sum())
      assert.error_matches(function() nn.VolumetricMaxUnpooling(nn.VolumetricMaxPooling(2, 2, 2)):forward(small) end, 'need a forward')
   end)

   it('nn.VolumetricReplicationPadding', function()
      local x = torch.randn(1, 2, 2, 3)
      local y = check.module(nn.VolumetricReplicationPadding(1, 2, 0, 1, 1, 0), x)
      assert.same({1, 3, 3, 6}, sizes(y))
      assert.equal(x[1][1][1][1], y[1][1][1][1])
      assert.equal(x[1][2][2][3], y[1][3][3][6])
   end)
end)
