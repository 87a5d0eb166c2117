-- What the volumetric layers share: convolutions and poolings of (batch, planes, time, height, width) from the 2-D ops.
--
-- A convolution is a sum over the kT slices of its kernel: each is a 2-D convolution of all frames at once, the frames lying in the batch.
-- A pooling is one over height and width of every frame, then one over time, of kernel kT x 1 on planes of (time, height * width).

local op = require('relume.core').op
local volume = {}

--- Stores sizes given as (kT, kW, kH, dT, dW, dH, padT, padW, padH) under their names; strides default to `stride` (or the kernel's size).
function volume.sizes(self, stride, kT, kW, kH, dT, dW, dH, padT, padW, padH)
   self.kT, self.kW, self.kH = kT, kW, kH
   self.dT, self.dW, self.dH = dT or stride or kT, dW or stride or kW, dH or stride or kH
   self.padT = padT or 0
   self.padW, self.padH = padW or self.padT, padH or self.padT
end

-- (n, c, t, h, w) as (n t, c, h, w).
local function frames(x)
   local n, c, t, h, w = x:size(1), x:size(2), x:size(3), x:size(4), x:size(5)
   return op.permute(x, {0, 2, 1, 3, 4}):contiguous():view(n * t, c, h, w)
end

-- Undoes frames, for n samples.
local function unframes(y, n)
   return op.permute(y:view(n, y:size(1) / n, y:size(2), y:size(3), y:size(4)), {0, 2, 1, 3, 4}):contiguous()
end

local function padTime(x, pad, value)
   if pad == 0 then return x end
   return op.pad(x, {0, 0, pad, 0, 0}, {0, 0, pad, 0, 0}, value or 0)
end

--- Convolution; w is (out, in, kT, kH, kW); lists are {time, height, width}.
function volume.conv(x, w, b, stride, pad, dilation)
   local n, kT = x:size(1), w:size(3)
   local p = padTime(x, pad[1])
   local steps = math.floor((p:size(3) - dilation[1] * (kT - 1) - 1) / stride[1]) + 1
   if steps < 1 then
      error(('[VolumetricConvolution] frames; got %d, need at least the kernel of %d'):format(p:size(3), dilation[1] * (kT - 1) + 1), 0)
   end
   local sum
   for k = 0, kT - 1 do
      local y = op.conv2d(frames(op.slice(p, 2, k * dilation[1], steps, stride[1])), op.select(w, 2, k):contiguous(), k == 0 and b or nil,
         {stride[2], stride[3]}, {pad[2], pad[3]}, {dilation[2], dilation[3]}, 1)
      sum = sum and op.add(sum, y) or y
   end
   return unframes(sum, n)
end

--- Transposed convolution; w is (in, out, kT, kH, kW); adj adds to the output's size.
function volume.convTranspose(x, w, b, stride, pad, adj)
   local n, t, kT = x:size(1), x:size(3), w:size(3)
   local f, sum, total = frames(x), nil, (t - 1) * stride[1] + kT + adj[1]
   for k = 0, kT - 1 do
      local y = unframes(op.conv_transpose2d(f, op.select(w, 2, k):contiguous(), nil, {stride[2], stride[3]}, {pad[2], pad[3]}, {1, 1},
         {adj[2], adj[3]}, 1), n)
      local placed = op.slice_grad(y, {n, y:size(2), total, y:size(4), y:size(5)}, 2, k, stride[1])
      sum = sum and op.add(sum, placed) or placed
   end
   sum = op.slice(sum, 2, pad[1], total - 2 * pad[1]):contiguous()
   return b and op.add(sum, b:view(1, b:size(1), 1, 1, 1)) or sum
end

-- (n, c, t, h, w) as planes (n c, 1, t, h w) and back.
local function columns(x)
   return x:contiguous():view(x:size(1) * x:size(2), 1, x:size(3), x:size(4) * x:size(5))
end

--- Largest value of each window, and the positions within planes and within time, from 0.
function volume.maxPool(x, kernel, stride, pad, dilation, ceil)
   local n = x:size(1)
   local y, inPlane = op.max_pool2d(frames(x), {kernel[2], kernel[3]}, {stride[2], stride[3]}, {pad[2], pad[3]},
      {dilation[2], dilation[3]}, ceil)
   y = unframes(y, n)
   local z, inTime = op.max_pool2d(columns(y), {kernel[1], 1}, {stride[1], 1}, {pad[1], 0}, {dilation[1], 1}, ceil)
   return z:view(n, y:size(2), z:size(3), y:size(4), y:size(5)), inPlane, inTime
end

--- Puts values back at the positions that maxPool gave, in a volume of the sizes {time, height, width}; 0 elsewhere.
function volume.maxUnpool(y, inPlane, inTime, sizes)
   local n, c, h, w = y:size(1), y:size(2), y:size(4), y:size(5)
   local z = op.max_pool2d_dx(columns(y), inTime, {sizes[1], h * w}):view(n, c, sizes[1], h, w)
   return unframes(op.max_pool2d_dx(frames(z), inPlane, {sizes[2], sizes[3]}), n)
end

--- Mean of each window.
function volume.avgPool(x, kernel, stride, pad, ceil, countPad)
   local n = x:size(1)
   local y = unframes(op.avg_pool2d(frames(x), {kernel[2], kernel[3]}, {stride[2], stride[3]}, {pad[2], pad[3]}, ceil, countPad), n)
   local z = op.avg_pool2d(columns(y), {kernel[1], 1}, {stride[1], 1}, {pad[1], 0}, ceil, countPad)
   return z:view(n, y:size(2), z:size(3), y:size(4), y:size(5))
end

return volume
