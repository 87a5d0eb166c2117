-- Module tapes: what a built-in module's forward recorded, for its backward
-- (module, input -> output; module, gradOutput -> gradInput, gradWeight, gradBias).
--
-- 1. A module with a `compute(self, input, weight, bias)` needs nothing else. `forward` runs it on leaves: detached aliases
--    of the input and of the parameters that require grad, so the caller's tensors stay ordinary Torch7 tensors.
-- 2. If the input or a parameter already requires grad (tape style), compute runs straight on the caller's tape.
-- 3. The record lives in a side table with weak keys, not in a field: files, clones and `type` never see it.
-- 4. Leaves are listed in `xs`: those of the input first (`nx` of them), then weight, then bias.

local C = require 'relume.core'
local tape = {}

-- The mark tells capture that entries made by captured code are dropped.
local records = setmetatable({}, {__mode = 'k', __tape = true})
local grad, gradEnabled = C.grad, C.gradEnabled
local RETAIN = {retain = true, allowUnused = true, unchecked = true} -- changed values are used as they are, as in the original
local FLOAT = {
   ['torch.DoubleTensor'] = true, ['torch.FloatTensor'] = true, ['torch.HalfTensor'] = true, ['torch.BFloat16Tensor'] = true,
   ['torch.CudaTensor'] = true, ['torch.CudaDoubleTensor'] = true, ['torch.CudaHalfTensor'] = true, ['torch.CudaBFloat16Tensor'] = true,
}

--- True when some tensor of x (a tensor or nested table) is on the caller's tape.
local function onTape(x)
   if type(x) == 'table' then
      for _, v in pairs(x) do
         if onTape(v) then return true end
      end
      return false
   end
   return type(x) == 'userdata' and x:requiresGrad()
end
tape.onTape = onTape

-- An alias of t that gradients stop at; integers are passed as they are. Appends to xs.
local function leaf(t, xs)
   if FLOAT[t:type()] then
      t = t:detach():requiresGrad(true)
      xs[#xs + 1] = t
   end
   return t
end

local function leaves(x, xs)
   if type(x) == 'userdata' then return leaf(x, xs) end
   if type(x) ~= 'table' then return x end
   local r = {}
   for i = 1, #x do r[i] = leaves(x[i], xs) end
   return r
end

-- The tensors of x (nested tables in order), appended to list.
local function flatten(x, list)
   if type(x) == 'table' then
      for i = 1, #x do flatten(x[i], list) end
   else
      list[#list + 1] = x
   end
   return list
end

-- Takes value into the tensor that old is, so that old's identity and its holders see it.
local function keep(old, value)
   if type(value) == 'table' then
      local r = type(old) == 'table' and old or {}
      for i = 1, #value do r[i] = keep(r[i], value[i]) end
      for i = #value + 1, #r do r[i] = nil end
      return r
   end
   if type(old) == 'userdata' and old:type() == value:type() and not old:requiresGrad() then return old:set(value) end
   return value:detach()
end

--- The tensor to store in a field that held old: old itself set to value, or value when it carries history.
function tape.keep(old, value)
   if onTape(value) then return value end
   return keep(old, value)
end

--- sum = a (first) or sum + a, nested tables included. sum is ours to change; returned, as it may be a new one.
local function addInto(sum, a, first)
   if type(a) == 'table' then
      sum = type(sum) == 'table' and sum or {}
      for k = 1, #a do sum[k] = addInto(sum[k], a[k], first) end
      for k = #a + 1, #sum do sum[k] = nil end
      return sum
   end
   if not first then return sum:add(a) end
   if type(sum) ~= 'userdata' or sum:type() ~= a:type() then sum = a.new() end
   return sum:resizeAs(a):copy(a)
end
tape.addInto = addInto

-- The leaves of a record: the input's, then weight and bias.
local function begin(self, input)
   local w, b = self.weight, self.bias
   local xs = {}
   local x = leaves(input, xs)
   local nx = #xs
   if w then
      w = w:detach():requiresGrad(true)
      xs[nx + 1] = w
   end
   if b then
      b = b:detach():requiresGrad(true)
      xs[#xs + 1] = b
   end
   return {source = input, xs = xs, nx = nx, x = x, w = w, b = b}
end

-- Runs compute on leaves and remembers them.
local function record(self, input)
   local r = begin(self, input)
   r.y = self:compute(r.x, r.w, r.b)
   r.off = not gradEnabled()
   records[self] = r
   return r
end

-- The record for which a compiled forward left p (see jit/records.lua).
local function revive(self, p)
   local r
   if p.loss then
      local xs = {}
      r = {x = leaves(p.x, xs), xs = xs, nx = #xs, source = p.source, target = p.target}
   else
      r = begin(self, p.x)
   end
   r.y = p.pending.attach(p, r.xs)
   return r
end

local function last(self)
   local r = records[self]
   if type(r) == 'userdata' or r and r.held then
      r = C.planHeld(type(r) == 'userdata' and r or r.held).open(r, self)
      records[self] = r
   end
   if r and r.pending then return revive(self, r) end
   return r
end

--- updateOutput of a module with compute.
function tape.forward(self, input)
   local weight, bias = self.weight, self.bias
   if onTape(input) or weight and weight:requiresGrad() or bias and bias:requiresGrad() then
      records[self] = nil
      local y = self:compute(input, weight, bias)
      self.output = y
      return y
   end
   local y = keep(self.output, record(self, input).y)
   self.output = y
   return y
end

--- updateOutput of a module with compute whose gradients are written by hand: nothing is recorded.
function tape.plain(self, input)
   local y = self:compute(input, self.weight, self.bias)
   if not onTape(y) then y = keep(self.output, y) end
   self.output = y
   return y
end

-- Same tensors, or others that see the same elements.
local function same(a, b)
   if rawequal(a, b) then return true end
   if type(a) ~= type(b) then return false end
   if type(a) == 'userdata' then return a:isSetTo(b) end
   if type(a) ~= 'table' or #a ~= #b then return false end
   for i = 1, #a do
      if not same(a[i], b[i]) then return false end
   end
   return true
end

-- The leaves of a record still see the input's elements. The caller's tensor itself tells nothing: it may be the output of a module that has
-- run again since, and then backward goes by what is in it now, as the original does.
local function sees(x, input)
   if type(x) == 'userdata' then return type(input) == 'userdata' and x:isSetTo(input) end
   if type(x) ~= 'table' then return rawequal(x, input) end
   if type(input) ~= 'table' or #x ~= #input then return false end
   for i = 1, #x do
      if not sees(x[i], input[i]) then return false end
   end
   return true
end

-- The record of input's forward; made now when the last forward was of something else. Modules that draw or gather statistics in
-- forward (`lastForward`) stay with what they drew, as the original does.
local function recordOf(self, input)
   local r = last(self)
   if r and not r.off and (self.lastForward or sees(r.x, input)) then return r end
   record(self, input)
   return records[self] -- read, so that capture sees that its backward is inside
end

-- Gradients of r.y with respect to xs, in their order (nil where y does not depend on it).
local function gradients(r, xs, gradOutput)
   local ys, dys = {}, {}
   local y = r.y
   if type(y) == 'table' then
      local all, dall = flatten(y, {}), flatten(gradOutput, {})
      for i = 1, #all do
         if all[i]:requiresGrad() then
            ys[#ys + 1] = all[i]
            dys[#dys + 1] = dall[i]
         end
      end
   elseif y:requiresGrad() then
      ys[1] = y
      dys[1] = gradOutput
   end
   if #ys == 0 or #xs == 0 then
      if r.off then error('[backward] gradient mode; got backward inside torch.noGrad, need it outside', 0) end
      return {}
   end
   return grad(ys, xs, dys, RETAIN)
end

-- dx in the shape of the input: zeros for what has no gradient.
local function shaped(old, x, r, dxs, i)
   if type(x) == 'table' then
      local g = type(old) == 'table' and old or {}
      for k = 1, #x do g[k], i = shaped(g[k], x[k], r, dxs, i) end
      for k = #x + 1, #g do g[k] = nil end
      return g, i
   end
   local d
   if rawequal(x, r.xs[i]) then
      d = dxs[i]
      i = i + 1
   end
   if d then return keep(old, d), i end
   if type(old) ~= 'userdata' then old = x.new() end
   return old:resize(x:size()):zero(), i
end

local function setGradInput(self, r, dxs)
   local g
   if type(r.x) == 'userdata' and r.nx == 1 and dxs[1] then
      g = keep(self.gradInput, dxs[1])
   else
      g = shaped(self.gradInput, r.x, r, dxs, 1)
   end
   self.gradInput = g
   return g
end

-- g += scale * d, where there are both.
local function add(g, scale, d)
   if not (g and d) then return end
   if scale == 1 then g:add(d) else g:add(scale, d) end
end

-- Adds the parameters' gradients to gradWeight and gradBias; dxs[i] is the first one's.
local function accumulate(self, r, dxs, i, scale)
   if r.w then
      add(self.gradWeight, scale, dxs[i])
      i = i + 1
   end
   if r.b then add(self.gradBias, scale, dxs[i]) end
end

-- A part of xs: the input's leaves, or the parameters'.
local function part(r, from, to)
   local xs = {}
   for i = from, to do xs[#xs + 1] = r.xs[i] end
   return xs
end

--- updateGradInput of a module with compute. A module whose gradInput is nil has none, as in the original: the idiom for a first layer,
-- `net:get(1).gradInput = nil`.
function tape.gradInput(self, input, gradOutput)
   if self.gradInput == nil then return nil end
   local r = recordOf(self, input)
   return setGradInput(self, r, gradients(r, part(r, 1, r.nx), gradOutput))
end

--- accGradParameters of a module with compute.
function tape.accGrad(self, input, gradOutput, scale)
   local r = recordOf(self, input)
   accumulate(self, r, gradients(r, part(r, r.nx + 1, #r.xs), gradOutput), 1, scale)
end

--- Both at once: one walk over the tape.
function tape.backward(self, input, gradOutput, scale)
   local r = recordOf(self, input)
   if self.gradInput == nil then
      accumulate(self, r, gradients(r, part(r, r.nx + 1, #r.xs), gradOutput), 1, scale)
      return nil
   end
   local dxs = gradients(r, r.xs, gradOutput)
   accumulate(self, r, dxs, r.nx + 1, scale)
   return setGradInput(self, r, dxs)
end

--- The loss of a criterion with compute(self, input, target): a rank-0 tensor on the caller's tape, or nil and the record's loss.
function tape.loss(self, input, target)
   if onTape(input) then
      records[self] = nil
      return self:compute(input, target)
   end
   local xs = {}
   local x = leaves(input, xs)
   local y = self:compute(x, target)
   records[self] = {source = input, target = target, xs = xs, nx = #xs, x = x, y = y, off = not gradEnabled()}
   return nil, y
end

--- updateGradInput of a criterion with compute.
function tape.lossGrad(self, input, target)
   local r = last(self)
   if not (r and not r.off and same(r.source, input) and same(r.target, target)) then
      tape.loss(self, input, target)
      r = records[self]
   end
   return setGradInput(self, r, gradients(r, r.xs, nil))
end

--- Forgets what module's forward recorded.
function tape.clear(module)
   records[module] = nil
end

return tape
