-- nn.SparseJacobian: checks gradients of modules whose input is rows of {index, value} (module, input -> largest error); see nn.Jacobian.

local Jacobian = nn.Jacobian
nn.SparseJacobian = {}
local Sparse = nn.SparseJacobian

local function values(t) return t:select(2, 2) end

-- Gradient of the values, from a gradInput for one sample or a list of them.
local function gradientOf(din)
   return values(type(din) == 'table' and din[1] or din)
end

local function randomize(t, minval, maxval)
   minval, maxval = minval or -2, maxval or 2
   t:copy(torch.rand(t:nElement()):mul(maxval - minval):add(minval))
end

--- Matrix of d output / d values (or d param, with its gradient dparam) as backward gives it.
function Sparse.backward(module, input, param, dparam)
   if param then return Jacobian.backward(module, input, param, dparam) end
   return Jacobian.byBackward(module, input, input:size(1), gradientOf)
end

--- Matrix of d output / d values (or d param) by differences.
function Sparse.forward(module, input, param)
   return Jacobian.forward(module, input, param or values(input))
end

Sparse.backwardUpdate, Sparse.forwardUpdate, Sparse.testAllUpdate = Jacobian.backwardUpdate, Jacobian.forwardUpdate, Jacobian.testAllUpdate

--- Largest error of the values' gradient, for random values between minval (-2) and maxval (2).
function Sparse.testJacobian(module, input, minval, maxval)
   randomize(values(input), minval, maxval)
   return (Sparse.forward(module, input) - Sparse.backward(module, input)):abs():max()
end

--- Largest error of the gradient of param, whose gradient tensor is dparam.
function Sparse.testJacobianParameters(module, input, param, dparam, minval, maxval)
   randomize(values(input), minval, maxval)
   randomize(param, minval, maxval)
   return (Sparse.backward(module, input, param, dparam) - Sparse.forward(module, input, param)):abs():max()
end

--- Largest error of param's update.
function Sparse.testJacobianUpdateParameters(module, input, param, minval, maxval)
   randomize(values(input), minval, maxval)
   randomize(param, minval, maxval)
   return (Sparse.backwardUpdate(module, input, param) - Sparse.forwardUpdate(module, input, param)):abs():max()
end

--- Errors of output and gradInput of a module after it was written and read.
function Sparse.testIO(module, input, minval, maxval)
   randomize(values(input), minval, maxval)
   return Jacobian.errorsOfCopy(module, input)
end

return Sparse
