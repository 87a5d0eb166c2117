-- Convolution and pooling: values against loops written here, gradients, batches, text.
local check = require 'support.module_check'

local function sizes(t) return t:size():totable() end

-- Cross-correlation by loops: x (n, c, h, w), m a SpatialConvolution.
local function convolve(m, x)
   local n, h, w = x:size(1), x:size(3), x:size(4)
   local dh, dw = m.dilationH or 1, m.dilationW or 1
   local oh = math.floor((h + 2 * m.padH - dh * (m.kH - 1) - 1) / m.dH) + 1
   local ow = math.floor((w + 2 * m.padW - dw * (m.kW - 1) - 1) / m.dW) + 1
   local y = torch.zeros(n, m.nOutputPlane, oh, ow)
   local weight = m.weight:view(m.nOutputPlane, m.nInputPlane, m.kH, m.kW)
   for b = 1, n do
      for o = 1, m.nOutputPlane do
         for i = 1, oh do
            for j = 1, ow do
               local s = m.bias and m.bias[o] or 0
               for c = 1, m.nInputPlane do
                  for p = 1, m.kH do
                     for q = 1, m.kW do
                        local r, t = (i - 1) * m.dH - m.padH + (p - 1) * dh + 1, (j - 1) * m.dW - m.padW + (q - 1) * dw + 1
                        if r >= 1 and r <= h and t >= 1 and t <= w then s = s + weight[o][c][p][q] * x[b][c][r][t] end
                     end
                  end
               end
               y[b][o][i][j] = s
            end
         end
      end
   end
   return y
end

-- Transposed convolution by loops.
local function scatter(m, x)
   local n, h, w = x:size(1), x:size(3), x:size(4)
   local oh = (h - 1) * m.dH - 2 * m.padH + m.kH + m.adjH
   local ow = (w - 1) * m.dW - 2 * m.padW + m.kW + m.adjW
   local y = torch.zeros(n, m.nOutputPlane, oh, ow)
   for b = 1, n do
      for o = 1, m.nOutputPlane do
         y[b][o]:fill(m.bias and m.bias[o] or 0)
         for c = 1, m.nInputPlane do
            for i = 1, h do
               for j = 1, w do
                  for p = 1, m.kH do
                     for q = 1, m.kW do
                        local r, t = (i - 1) * m.dH - m.padH + p, (j - 1) * m.dW - m.padW + q
                        if r >= 1 and r <= oh and t >= 1 and t <= ow then
                           y[b][o][r][t] = y[b][o][r][t] + x[b][c][i][j] * m.weight[c][o][p][q]
                        end
                     end
                  end
               end
            end
         end
      end
   end
   return y
end

-- Windows of one plane: f gets the values inside the image.
local function pool(x, m, ceil, f)
   local h, w = x:size(1), x:size(2)
   local function out(n, k, d, pad)
      local o = (ceil and math.ceil or math.floor)((n + 2 * pad - k) / d) + 1
      if pad > 0 and (o - 1) * d >= n + pad then o = o - 1 end
      return o
   end
   local oh, ow = out(h, m.kH, m.dH, m.padH), out(w, m.kW, m.dW, m.padW)
   local y = torch.zeros(oh, ow)
   for i = 1, oh do
      for j = 1, ow do
         local values = {}
         for p = 0, m.kH - 1 do
            for q = 0, m.kW - 1 do
               local r, t = (i - 1) * m.dH - m.padH + p + 1, (j - 1) * m.dW - m.padW + q + 1
               if r >= 1 and r <= h and t >= 1 and t <= w then values[#values + 1] = x[r][t] end
            end
         end
         y[i][j] = f(values)
      end
   end
   return y
end

local function largest(v) return math.max(unpack(v)) end
local function mean(v, n)
   local s = 0
   for i = 1, #v do s = s + v[i] end
   return s / (n or #v)
end

describe('spatial convolution', function()
   before_each(function() torch.manualSeed(51) end)

   it('nn.SpatialConvolution', function()
      for _, a in ipairs {{2, 3, 3, 2}, {2, 3, 3, 3, 2, 2, 1, 1}, {1, 2, 1, 1}, {2, 2, 2, 3, 1, 2, 0, 1}} do
         local m, x = nn.SpatialConvolution(unpack(a)), torch.randn(2, a[1], 5, 6)
         assert.near(check.module(m, x), convolve(m, x), 1e-10)
      end
      check.batch(nn.SpatialConvolution(2, 3, 3, 3), torch.randn(3, 2, 5, 5))
      check.module(nn.SpatialConvolution(2, 3, 3, 3):noBias(), torch.randn(2, 5, 5))
      check.module(nn.SpatialConvolutionMM(2, 3, 3, 3), torch.randn(2, 2, 5, 5))
      local m = nn.SpatialConvolutionMM(2, 3, 3, 3, 1, 1, 1)
      assert.same({3, 18}, sizes(m.weight))
      local x = torch.randn(1, 2, 5, 5)
      assert.near(m:forward(x), convolve(m, x), 1e-10)
   end)

   it('nn.SpatialDilatedConvolution', function()
      local m, x = nn.SpatialDilatedConvolution(2, 2, 3, 3, 1, 1, 2, 1, 2, 2), torch.randn(2, 2, 6, 6)
      assert.near(check.module(m, x), convolve(m, x), 1e-10)
   end)

   it('nn.SpatialFullConvolution', function()
      for _, a in ipairs {{2, 3, 3, 3}, {2, 3, 4, 3, 2, 2, 1, 1}, {2, 1, 3, 3, 2, 2, 1, 1, 1, 0}} do
         local m, x = nn.SpatialFullConvolution(unpack(a)), torch.randn(2, a[1], 3, 4)
         assert.near(check.module(m, x), scatter(m, x), 1e-10)
      end
      check.batch(nn.SpatialFullConvolution(2, 3, 3, 3), torch.randn(3, 2, 3, 3))
      local m = nn.SpatialFullConvolution(2, 3, 3, 3, 2, 2, 1, 1)
      assert.same({3, 6, 6}, sizes(m:forward {torch.randn(2, 3, 3), torch.randn(1, 6, 6)}))
      assert.has_error(function() nn.SpatialFullConvolution(1, 1, 3, 3, 1, 1, 0, 0, 1, 1) end)
   end)

   it('starts uniform within 1 / sqrt(fan in)', function()
      local m = nn.SpatialConvolution(4, 50, 5, 5)
      assert.is_true(m.weight:abs():max() <= 0.1 and m.weight:abs():max() > 0.09)
   end)

   it('prints as the original does', function()
      assert.equal('nn.SpatialConvolution(3 -> 8, 5x5)', tostring(nn.SpatialConvolution(3, 8, 5, 5)))
      assert.equal('nn.SpatialConvolution(3 -> 8, 5x5, 2,2, 1,1) without bias',
         tostring(nn.SpatialConvolution(3, 8, 5, 5, 2, 2, 1, 1):noBias()))
      assert.equal('nn.SpatialMaxPooling(2x2, 2,2)', tostring(nn.SpatialMaxPooling(2, 2)))
      assert.equal('nn.SpatialMaxPooling(3x3, 2,2, 1,1)', tostring(nn.SpatialMaxPooling(3, 3, 2, 2, 1, 1)))
      assert.equal('nn.SpatialFullConvolution(2 -> 3, 4x4, 2,2, 1,1)', tostring(nn.SpatialFullConvolution(2, 3, 4, 4, 2, 2, 1, 1)))
   end)

   it('names wrong inputs', function()
      assert.has_error(function() nn.SpatialConvolution(3, 8, 5, 5):forward(torch.randn(2, 8, 8)) end)
      assert.has_error(function() nn.SpatialConvolution(3, 8, 5, 5):forward(torch.randn(3, 3)) end)
      assert.has_error(function() nn.SpatialConvolution(3, 8, 5, 5):forward(torch.randn(3, 4, 4)) end)
   end)
end)

describe('pooling', function()
   before_each(function() torch.manualSeed(52) end)

   it('nn.SpatialMaxPooling', function()
      for _, ceil in ipairs {false, true} do
         for _, a in ipairs {{2, 2}, {3, 2, 2, 1}, {3, 3, 2, 2, 1, 1}} do
            local m, x = nn.SpatialMaxPooling(unpack(a)), torch.randn(2, 3, 6, 7)
            if ceil then m:ceil() end
            local y = check.module(m, x)
            for b = 1, 2 do
               for c = 1, 3 do assert.near(y[b][c]:clone(), pool(x[b][c], m, ceil, largest), 0) end
            end
         end
      end
      check.batch(nn.SpatialMaxPooling(2, 2), torch.randn(2, 3, 4, 4))
      assert.same({2, 3, 3}, sizes(check.module(nn.SpatialDilatedMaxPooling(2, 2, 1, 1, 0, 0, 2, 2), torch.randn(2, 5, 5))))
   end)

   it('nn.SpatialAveragePooling', function()
      for _, a in ipairs {{2, 2, 2, 2}, {3, 2, 2, 1}, {3, 3, 2, 2, 1, 1}} do
         local m, x = nn.SpatialAveragePooling(unpack(a)), torch.randn(2, 3, 6, 7)
         local y = check.module(m, x)
         assert.near(y[2][3]:clone(), pool(x[2][3], m, false, function(v) return mean(v, m.kW * m.kH) end), 1e-12)
         m:setCountExcludePad()
         assert.near(check.module(m, x)[1][2]:clone(), pool(x[1][2], m, false, mean), 1e-12)
      end
      check.batch(nn.SpatialAveragePooling(2, 2, 2, 2), torch.randn(2, 3, 4, 4))
   end)

   it('nn.SpatialAdaptiveAveragePooling', function()
      local m, x = nn.SpatialAdaptiveAveragePooling(3, 2), torch.randn(2, 3, 5, 7)
      local y = check.module(m, x)
      assert.same({2, 3, 2, 3}, sizes(y))
      for i = 0, 1 do
         for j = 0, 2 do
            local r, s = math.floor(i * 5 / 2), math.ceil((i + 1) * 5 / 2)
            local t, u = math.floor(j * 7 / 3), math.ceil((j + 1) * 7 / 3)
            assert.near(y[2][1][i + 1][j + 1], x[2][1]:narrow(1, r + 1, s - r):narrow(2, t + 1, u - t):mean(), 1e-12)
         end
      end
      assert.same({3, 1, 1}, sizes(nn.SpatialAdaptiveAveragePooling(1, 1):forward(x[1])))
   end)
end)
