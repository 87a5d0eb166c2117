-- Checks every contract of a module: gradients by finite differences, accumulation, scale, split backward, tape style, float, clone and
-- .t7 (module, input -> failed assertions).
local assert = require 'luassert'

local check = {}

local function isTable(x) return type(x) == 'table' and not torch.isTensor(x) end

--- f over the tensors of nested tables, in order.
local function each(x, f)
   if isTable(x) then
      for i = 1, #x do each(x[i], f) end
   else
      f(x)
   end
end

local function map(x, f)
   if not isTable(x) then return f(x) end
   local r = {}
   for i = 1, #x do r[i] = map(x[i], f) end
   return r
end

local function list(x)
   local l = {}
   each(x, function(t) l[#l + 1] = t end)
   return l
end

local function isFloat(t) return t:type() == 'torch.DoubleTensor' or t:type() == 'torch.FloatTensor' end

--- Sum of products of two nested tables of tensors.
local function inner(a, b)
   local sum, bs = 0, list(b)
   for i, t in ipairs(list(a)) do sum = sum + torch.cmul(t, bs[i]):sum() end
   return sum
end

--- Central differences of f() for each element of t.
local function differences(t, f, step)
   local d = torch.DoubleTensor(t:nElement())
   local flat = t:view(-1)
   for i = 1, t:nElement() do
      local old = flat[i]
      flat[i] = old + step
      local high = f()
      flat[i] = old - step
      local low = f()
      flat[i] = old
      d[i] = (high - low) / (2 * step)
   end
   return d:viewAs(t)
end

local function clones(x) return map(x, function(t) return t:clone() end) end

-- Gradients of <output, dy> against differences.
local function finite(module, input, dy, o)
   local step, tolerance = o.step or 1e-5, o.tolerance or 1e-6
   module:zeroGradParameters()
   module:forward(input)
   local dx = clones(module:backward(input, dy))
   local params, grads = module:parameters()
   local dps = {}
   for i = 1, grads and #grads or 0 do dps[i] = grads[i]:clone() end
   local function loss() return inner(module:forward(input), dy) end
   local dxs = list(dx)
   for i, x in ipairs(list(input)) do
      assert.same(x:size():totable(), dxs[i]:size():totable())
      if isFloat(x) and not o.noInput then assert.near(dxs[i], differences(x, loss, step), tolerance) end
   end
   for i = 1, params and #params or 0 do
      assert.near(dps[i], differences(params[i], loss, step), tolerance)
   end
   return dx, dps
end

-- A second backward adds; a scale multiplies; the two halves of backward give the same.
local function accumulation(module, input, dy, dx, dps)
   module:forward(input)
   module:backward(input, dy, 0.5)
   local _, grads = module:parameters()
   for i = 1, #dps do assert.near(grads[i], dps[i] * 1.5, 1e-9) end
   module:zeroGradParameters()
   for i = 1, #dps do assert.equal(0, grads[i]:abs():sum()) end
   module:forward(input)
   assert.near(module:updateGradInput(input, dy), dx, 1e-9)
   module:accGradParameters(input, dy, 2)
   for i = 1, #dps do assert.near(grads[i], dps[i] * 2, 1e-9) end
end

-- Inputs and parameters that require grad: the same through y:backward(dy).
local function tapeStyle(module, input, dy, dx, dps)
   local m = module:clone()
   local x = map(input, function(t) return isFloat(t) and t:clone():requiresGrad(true) or t end)
   local params = m:parameters() or {}
   for _, p in ipairs(params) do p:requiresGrad(true) end
   local y = m:forward(x)
   local ys, dys = list(y), list(dy)
   local loss
   for i = 1, #ys do
      local part = torch.cmul(ys[i], dys[i]):sum()
      loss = loss and loss + part or part
   end
   loss:backward()
   local dxs = list(dx)
   for i, t in ipairs(list(x)) do
      if isFloat(t) and t:grad() then assert.near(t:grad(), dxs[i], 1e-9) end
   end
   for i, p in ipairs(params) do assert.near(p:grad(), dps[i], 1e-9) end
end

-- A copy read from a file behaves the same and shares nothing.
local function copies(module, input, dy, dx)
   local y = clones(module:forward(input))
   for _, copy in ipairs {module:clone(), nn.utils.copyObject(module)} do
      assert.equal(torch.type(module), torch.type(copy))
      assert.near(copy:forward(input), y, 1e-12)
      copy:zeroGradParameters()
      assert.near(copy:backward(input, dy), dx, 1e-12)
      local a, b = module:parameters(), copy:parameters()
      for i = 1, a and #a or 0 do assert.not_equal(torch.pointer(a[i]:storage()), torch.pointer(b[i]:storage())) end
   end
end

-- Float gives the same within its precision, and types come out right.
local function float(module, input, dy, dx)
   local y = clones(module:forward(input))
   local m = module:clone():float()
   assert.equal('torch.FloatTensor', m:type())
   local function toFloat(t) return isFloat(t) and t:float() or t end
   local fx, fdy = map(input, toFloat), map(dy, toFloat)
   assert.near(m:forward(fx), map(y, toFloat), 1e-4)
   m:zeroGradParameters()
   assert.near(m:backward(fx, fdy), map(dx, toFloat), 1e-3)
   assert.equal('torch.DoubleTensor', m:double():type())
   assert.near(m:forward(input), y, 1e-4)
end

--- Checks module on input (a tensor or nested table of Double tensors). o: step, tolerance, noInput (no input gradient), noTape, noFloat,
-- random (only shapes and gradients of the same draw are checked elsewhere). Returns the output.
function check.module(module, input, o)
   o = o or {}
   torch.manualSeed(o.seed or 7)
   local y = clones(module:forward(input))
   local dy = map(y, function(t) return torch.randn(t:nElement()):viewAs(t) end)
   local dx, dps = finite(module, input, dy, o)
   accumulation(module, input, dy, dx, dps)
   if not o.noTape then tapeStyle(module, input, dy, dx, dps) end
   copies(module, input, dy, dx)
   if not o.noFloat then float(module, input, dy, dx) end
   return y
end

--- A batch gives what its samples give one by one.
function check.batch(module, input)
   local y = module:forward(input):clone()
   for i = 1, input:size(1) do
      assert.near(module:forward(input[i]), y[i], 1e-10)
   end
end

--- Gradients of a criterion by finite differences; its value is a number; tape style gives the same.
function check.criterion(criterion, input, target, o)
   o = o or {}
   local loss = criterion:forward(input, target)
   assert.equal('number', type(loss))
   assert.equal(loss, criterion.output)
   local dx = clones(criterion:backward(input, target))
   local dxs = list(dx)
   for i, x in ipairs(list(input)) do
      local d = differences(x, function() return criterion:forward(input, target) end, 1e-5)
      assert.near(dxs[i], d, o.tolerance or 1e-6)
   end
   local tx = map(input, function(t) return t:clone():requiresGrad(true) end)
   local tl = criterion:clone():forward(tx, target)
   tl:backward()
   for i, t in ipairs(list(tx)) do assert.near(t:grad(), dxs[i], 1e-10) end
   local copy = criterion:clone()
   assert.near(copy:forward(input, target), loss, 1e-12)
   if not o.noFloat then
      local f = criterion:clone():float()
      local fx = map(input, function(t) return t:float() end)
      local ft = target
      if not o.integerTarget and type(target) ~= 'number' and target ~= nil then ft = map(target, function(t) return t:float() end) end
      assert.near(f:forward(fx, ft), loss, 1e-4)
   end
   return loss, dx
end

check.clones, check.map, check.list, check.differences = clones, map, list, differences
return check
