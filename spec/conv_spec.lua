-- Convolution kernels on shapes that cut their panels, tiles and chunks in every way: results by plain loops, gradients as adjoints.
local C = require 'relume.core'

-- n, channels, height, width, result channels, kernel h w, stride h w, pad h w, dilation h w, groups
local shapes = {
   { 3, 1, 28, 28, 32, 5, 5, 1, 1, 0, 0, 1, 1, 1 },
   { 5, 32, 12, 12, 64, 5, 5, 1, 1, 0, 0, 1, 1, 1 },
   { 2, 16, 9, 11, 13, 3, 3, 1, 1, 1, 1, 1, 1, 1 },
   { 2, 70, 7, 5, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1 },
   { 19, 24, 2, 2, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1 },
   { 2, 6, 21, 17, 10, 3, 5, 2, 3, 1, 2, 1, 1, 1 },
   { 3, 4, 20, 20, 33, 8, 8, 4, 4, 0, 0, 1, 1, 1 },
   { 2, 3, 19, 23, 64, 7, 7, 2, 2, 3, 3, 1, 1, 1 },
   { 2, 12, 15, 14, 18, 3, 2, 1, 1, 2, 3, 2, 3, 1 },
   { 2, 12, 15, 14, 18, 3, 3, 2, 1, 1, 2, 2, 2, 3 },
   { 2, 9, 10, 10, 9, 3, 3, 1, 1, 1, 1, 1, 1, 9 },
   { 4, 130, 6, 6, 50, 1, 1, 1, 1, 0, 0, 1, 1, 1 },
   { 3, 20, 8, 8, 20, 1, 1, 2, 2, 0, 0, 1, 1, 2 },
   { 2, 5, 9, 9, 7, 2, 2, 3, 3, 0, 0, 1, 1, 1 },
   { 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1 },
   { 1, 2, 3, 4, 3, 3, 4, 1, 1, 2, 3, 1, 1, 1 },
   { 2, 3, 32, 32, 48, 16, 16, 16, 16, 0, 0, 1, 1, 1 },
   { 1, 3, 6, 200, 4, 1, 7, 1, 1, 0, 3, 1, 1, 1 },
}

local function loops(x, w, s, r)
   local n, c, h, wd, o, kh, kw, sh, sw, ph, pw, dh, dw, groups = unpack(s)
   local px, pwt, pr, oh, ow = x:data(), w:data(), r:data(), r:size(3), r:size(4)
   local cg, og, at = c / groups, o / groups, 0
   for i = 0, n - 1 do
      for m = 0, o - 1 do
         local g = math.floor(m / og)
         for y = 0, oh - 1 do
            for v = 0, ow - 1 do
               local sum = 0
               for q = 0, cg - 1 do
                  for a = 0, kh - 1 do
                     for b = 0, kw - 1 do
                        local iy, ix = y * sh - ph + a * dh, v * sw - pw + b * dw
                        if iy >= 0 and iy < h and ix >= 0 and ix < wd then
                           sum = sum + px[((i * c + g * cg + q) * h + iy) * wd + ix] * pwt[((m * cg + q) * kh + a) * kw + b]
                        end
                     end
                  end
               end
               pr[at] = sum
               at = at + 1
            end
         end
      end
   end
end

for _, kind in ipairs { 'double', 'float' } do
   local tolerance = kind == 'double' and 1e-11 or 1e-4
   it('result, input and weight gradient in ' .. kind, function()
      torch.manualSeed(7)
      for k, s in ipairs(shapes) do
         local n, c, h, wd, o, kh, kw, sh, sw, ph, pw, dh, dw, groups = unpack(s)
         local stride, pad, dil = { sh, sw }, { ph, pw }, { dh, dw }
         local x, w, b = torch.randn(n, c, h, wd)[kind](torch.randn(n, c, h, wd)), torch.randn(o, c / groups, kh, kw), torch.randn(o)
         w, b = w[kind](w), b[kind](b)
         local r = C.op.conv2d(x, w, nil, stride, pad, dil, groups)
         local expected = r:clone()
         loops(x, w, s, expected)
         local scale = math.sqrt(c / groups * kh * kw)
         assert.is_true((r - expected):abs():max() <= tolerance * scale, ('shape %d: result'):format(k))
         local biased = C.op.conv2d(x, w, b, stride, pad, dil, groups)
         assert.equal(0, (biased - (r + b:view(1, o, 1, 1):expandAs(r))):abs():max(), ('shape %d: bias is added after the sum'):format(k))
         -- <conv(x, w), g> = <x, dx(g, w)> = <w, dw(g, x)>, and each gradient is linear in g alone: a basis of random g
         for _ = 1, 3 do
            local g = torch.randn(r:size())
            g = g[kind](g)
            local dot = r:double():dot(g:double())
            local size = math.sqrt(r:nElement()) * scale
            local dx = C.op.conv2d_dx(g, w, { h, wd }, stride, pad, dil, groups)
            local dwt = C.op.conv2d_dw(g, x, { kh, kw }, stride, pad, dil, groups)
            assert.near(dot, dx:double():dot(x:double()), tolerance * size, ('shape %d: input gradient'):format(k))
            assert.near(dot, dwt:double():dot(w:double()), tolerance * size, ('shape %d: weight gradient'):format(k))
            local y, u = torch.randn(x:size()), torch.randn(w:size())
            y, u = y[kind](y), u[kind](u)
            local ry, ru = C.op.conv2d(y, w, nil, stride, pad, dil, groups), C.op.conv2d(x, u, nil, stride, pad, dil, groups)
            assert.near(ry:double():dot(g:double()), dx:double():dot(y:double()), tolerance * size, ('shape %d: input gradient, other input'):format(k))
            assert.near(ru:double():dot(g:double()), dwt:double():dot(u:double()), tolerance * size, ('shape %d: weight gradient, other weight'):format(k))
         end
      end
   end)
end

it('takes views and half types as it takes dense float', function()
   torch.manualSeed(8)
   local x, w = torch.randn(2, 9, 12, 4):float():transpose(2, 4), torch.randn(6, 4, 3, 3):float()
   local r = C.op.conv2d(x, w, nil, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1)
   assert.equal(0, (r - C.op.conv2d(x:contiguous(), w, nil, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1)):abs():max())
   local xh, wh = x:contiguous():half(), w:half()
   local rh = C.op.conv2d(xh, wh, nil, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1)
   assert.equal(0, (rh - C.op.conv2d(xh:float(), wh:float(), nil, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1):half()):float():abs():max())
end)
