-- nn.Jacobian: checks a module's gradients against finite differences (module, input -> largest error).

nn.Jacobian = {}
local Jacobian = nn.Jacobian

-- Copies of a vector-like tensor as one flat view.
local function flat(t)
   return t:contiguous():view(-1)
end

--- (inputs, outputs) matrix whose column i is what get returns for the gradient that is 1 at output i.
function Jacobian.byBackward(module, input, n, get)
   module:forward(input)
   local dout = module.output.new(module.output:size()):zero()
   local sdout = dout:view(-1)
   local jacobian = torch.Tensor(n, sdout:size(1)):zero()
   for i = 1, sdout:size(1) do
      dout:zero()
      sdout[i] = 1
      module:zeroGradParameters()
      module:forward(input)
      local din = module:updateGradInput(input, dout)
      module:accGradParameters(input, dout)
      jacobian:select(2, i):copy(flat(get(din)))
   end
   return jacobian
end

--- Matrix of d output / d input (or d param, with its gradient dparam) as backward gives it.
function Jacobian.backward(module, input, param, dparam)
   local n = (param or input):nElement()
   return Jacobian.byBackward(module, input, n, function(din) return dparam or din end)
end

--- The same for a learnt parameter through accUpdateGradParameters with learning rate 1.
function Jacobian.backwardUpdate(module, input, param)
   module:forward(input)
   local dout = module.output.new(module.output:size()):zero()
   local sdout = dout:view(-1)
   local jacobian = torch.Tensor(param:nElement(), sdout:size(1)):zero()
   local saved = {}
   local params = module:parameters()
   for i, p in ipairs(params) do saved[i] = p:clone() end
   for i = 1, sdout:size(1) do
      for k, p in ipairs(params) do p:copy(saved[k]) end
      dout:zero()
      sdout[i] = 1
      module:forward(input)
      module:updateGradInput(input, dout)
      module:accUpdateGradParameters(input, dout, 1)
      jacobian:select(2, i):copy(flat(param))
      jacobian:select(2, i):mul(-1)
   end
   for k, p in ipairs(params) do p:copy(saved[k]) end
   for i = 1, sdout:size(1) do jacobian:select(2, i):add(flat(param)) end
   return jacobian
end

--- Matrix of d output / d param (default: input) by central differences of step perturbation (1e-6).
function Jacobian.forward(module, input, param, perturbation)
   param = param or input
   perturbation = perturbation or 1e-6
   local storage, at = param:storage(), {}
   assert(param:isContiguous() or param:dim() == 1, 'param must be contiguous')
   local step = param:dim() == 1 and param:stride(1) or 1
   for i = 1, param:nElement() do at[i] = param:storageOffset() + (i - 1) * step end
   local rows = {}
   for i = 1, #at do
      local old = storage[at[i]]
      storage[at[i]] = old - perturbation
      local low = module:forward(input):clone()
      storage[at[i]] = old + perturbation
      local high = module:forward(input):clone()
      storage[at[i]] = old
      rows[i] = flat(high:add(-1, low):div(2 * perturbation))
   end
   local jacobian = torch.Tensor(#at, rows[1]:size(1))
   for i = 1, #rows do jacobian[i]:copy(rows[i]) end
   return jacobian
end

--- The same by one-sided updates; the name that the original's tests call.
function Jacobian.forwardUpdate(module, input, param, perturbation)
   return Jacobian.forward(module, input, param, perturbation)
end

local function randomize(input, minval, maxval)
   minval, maxval = minval or -2, maxval or 2
   input:copy(torch.rand(input:nElement()):mul(maxval - minval):add(minval))
end

--- Largest error of the input's gradient, for a random input between minval (-2) and maxval (2).
function Jacobian.testJacobian(module, input, minval, maxval, perturbation)
   randomize(input, minval, maxval)
   local fprop = Jacobian.forward(module, input, input, perturbation)
   local bprop = Jacobian.backward(module, input)
   return (fprop - bprop):abs():max()
end

--- Largest error of the gradient of param, whose gradient tensor is dparam.
function Jacobian.testJacobianParameters(module, input, param, dparam, minval, maxval, perturbation)
   randomize(input, minval, maxval)
   randomize(param, minval, maxval)
   local bprop = Jacobian.backward(module, input, param, dparam)
   local fprop = Jacobian.forward(module, input, param, perturbation)
   return (fprop - bprop):abs():max()
end

--- Largest error of param's update.
function Jacobian.testJacobianUpdateParameters(module, input, param, minval, maxval, perturbation)
   randomize(input, minval, maxval)
   randomize(param, minval, maxval)
   local bprop = Jacobian.backwardUpdate(module, input, param)
   local fprop = Jacobian.forwardUpdate(module, input, param, perturbation)
   return (fprop - bprop):abs():max()
end

-- The diagonal of the Hessian of the sum of squares of a linear module's outputs, halved: sums of squared derivatives.
local function squaredDerivatives(module, input, name)
   module:forward(input)
   local dout = module.output.new(module.output:size()):zero()
   local sdout, sum = dout:view(-1), nil
   for i = 1, sdout:size(1) do
      dout:zero()
      sdout[i] = 1
      module:zeroGradParameters()
      module:updateGradInput(input, dout)
      module:accGradParameters(input, dout)
      local g = flat(module[name])
      sum = sum and sum:addcmul(g, g) or torch.cmul(g, g)
   end
   return sum
end

local function testDiagHessian(module, input, name, diagonal, minval, maxval)
   randomize(input, minval, maxval)
   module:initDiagHessianParameters()
   module:forward(input)
   for _, field in ipairs {'diagHessianWeight', 'diagHessianBias'} do
      if module[field] then module[field]:zero() end
   end
   local ones = module.output.new(module.output:size()):fill(1)
   module:updateDiagHessianInput(input, ones)
   module:accDiagHessianParameters(input, ones)
   return (flat(module[diagonal]) - squaredDerivatives(module, input, name)):abs():max()
end

--- Largest errors of what nn.hessian gives for a linear module, at its input, weight and bias.
function Jacobian.testDiagHessianInput(module, input, minval, maxval)
   return testDiagHessian(module, input, 'gradInput', 'diagHessianInput', minval, maxval)
end

function Jacobian.testDiagHessianWeight(module, input, minval, maxval)
   return testDiagHessian(module, input, 'gradWeight', 'diagHessianWeight', minval, maxval)
end

function Jacobian.testDiagHessianBias(module, input, minval, maxval)
   return testDiagHessian(module, input, 'gradBias', 'diagHessianBias', minval, maxval)
end

--- Errors of output and gradInput of a module after it was written and read.
function Jacobian.testIO(module, input, minval, maxval)
   randomize(input, minval, maxval)
   return Jacobian.errorsOfCopy(module, input)
end

--- The same for the input as it is.
function Jacobian.errorsOfCopy(module, input)
   local go = module:forward(input):clone():copy(torch.rand(module.output:nElement()))
   local copy = nn.utils.copyObject(module)
   module:zeroGradParameters()
   copy:zeroGradParameters()
   module:forward(input)
   module:backward(input, go)
   copy:forward(input)
   copy:backward(input, go)
   return (module.output - copy.output):abs():max(), (module.gradInput - copy.gradInput):abs():max()
end

--- Errors of the parameters after accUpdateGradParameters of clones with shared weights against separate gradients, by parameter name.
function Jacobian.testAllUpdate(module, input, weight, gradWeight)
   local lr = torch.uniform(0.1, 1)
   local errors = {}
   local function prepare()
      local m = module:clone()
      m:zeroGradParameters()
      return m
   end
   local go = module:forward(input):clone():copy(torch.rand(module.output:nElement()))
   local expected = prepare()
   expected:forward(input)
   expected:updateGradInput(input, go)
   expected:accGradParameters(input, go, lr)
   local want = expected[weight]:clone():add(-1, expected[gradWeight])

   local function difference(m) return (m[weight] - want):abs():max() end

   local accumulated = prepare()
   accumulated:forward(input)
   accumulated:updateGradInput(input, go)
   accumulated:accGradParameters(input, go, lr)
   accumulated:updateParameters(1)
   errors.accGradParameters = difference(accumulated)

   local updated = prepare()
   updated:forward(input)
   updated:updateGradInput(input, go)
   updated:accUpdateGradParameters(input, go, lr)
   errors.accUpdateGradParameters = difference(updated)

   local first = prepare()
   local second = first:clone(weight)
   second:share(first, weight)
   first:forward(input)
   second:forward(input)
   first:updateGradInput(input, go)
   second:updateGradInput(input, go)
   first:accUpdateGradParameters(input, go, lr / 2)
   second:accUpdateGradParameters(input, go, lr / 2)
   errors['accUpdateGradParameters [shared]'] = difference(first)
   return errors
end

return Jacobian
