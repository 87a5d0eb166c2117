-- Self test of an installed library: torch.test() checks products, solutions, files, gradients and draws with torch.Tester.
local C = require 'relume.core'
local torch = C.torch
local tests = {}
local tester

function tests.product()
   local a, b, want = torch.randn(7, 5), torch.randn(5, 6), torch.zeros(7, 6)
   for i = 1, 7 do
      for j = 1, 6 do
         for k = 1, 5 do want[i][j] = want[i][j] + a[i][k] * b[k][j] end
      end
   end
   tester:assertTensorEq(torch.mm(a, b), want, 1e-12, 'matrix product')
end

function tests.inverse()
   local a = torch.randn(6, 6)
   tester:assertTensorEq(a * torch.inverse(a), torch.eye(6), 1e-8, 'inverse')
end

function tests.sort()
   local values, index = torch.sort(torch.randn(100))
   tester:assert(values:narrow(1, 2, 99):csub(values:narrow(1, 1, 99)):min() >= 0, 'sorted values')
   tester:asserteq(index:double():sum(), 5050, 'positions')
end

function tests.file()
   local x = {torch.randn(3, 4), name = 'x', {torch.LongTensor {1, 2}}}
   local y = torch.deserialize(torch.serialize(x))
   tester:assertTensorEq(y[1], x[1], 0, 'tensor of a file')
   tester:asserteq(y.name, 'x', 'string of a file')
   tester:assertTensorEq(y[2][1], x[2][1], 0, 'nested tensor of a file')
end

function tests.gradient()
   local x = torch.randn(5):requiresGrad(true)
   torch.tanh(x):sum():backward()
   local y = torch.tanh(x:detach())
   tester:assertTensorEq(x:grad(), y:cmul(y):mul(-1):add(1), 1e-12, 'gradient of tanh')
end

function tests.random()
   local state = torch.getRNGState()
   local a = torch.randn(100)
   torch.setRNGState(state)
   tester:assertTensorEq(torch.randn(100), a, 0, 'draws from one state')
   tester:assert(torch.rand(1000):max() < 1, 'range of uniform draws')
end

--- torch.test([names]): runs the checks of these names (a string or table; default: all).
function torch.test(names)
   tester = torch.Tester()
   tester:add(tests)
   tester:run(names)
   return tester
end

return tests
