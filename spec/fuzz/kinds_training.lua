-- Statements: gradients on the tape, modules and criterions, optimisers (generator -> lines).

local Gen = require 'fuzz.generate'
local G, N = {}, {}

local function loss(g, v) return (g:one {'torch.tanh(%s):sum()', '(%s * 2):sum()', 'torch.pow(%s, 2):mean()', 'torch.cmul(%s, x):sum()',
   '(torch.sigmoid(%s) - y):norm()'}):format(v) end

function G.leaf(g)
   local name = g:name 'g'
   g:line('local %s = %s:clone():requiresGrad(true)', name, g:one {'x', 'y', 'torch.ones(x:size(1))'})
   g:line('local l%s = %s', name, loss(g, name))
   g:line('l%s:backward()', name)
   g:line('log[#log + 1] = %s', g:one {name .. ':grad()', ('l%s:detach()'):format(name), ('%s:grad():sum()'):format(name),
      ('%s:requiresGrad()'):format(name)})
end
function G.weight(g)
   g:line 'weight:requiresGrad(true)'
   if g:chance(2) then g:line 'weight:setGrad(nil)' end
   g:line(';(%s):backward()', loss(g, 'weight'))
   if g:chance(2) then g:line('torch.noGrad(function() weight:add(-%s, weight:grad()) end)', g:one {'0.1', 'sgd.learningRate',
      '0.1 * n'}) end
   if g:chance(2) then g:line 'log[#log + 1] = weight:grad():clone()' end
   if g:chance(2) then g:line 'weight = weight:detach()' end
end
function G.asked(g)
   local name = g:name 'g'
   g:line('local %s = x:clone():requiresGrad(true)', name)
   g:line('log[#log + 1] = torch.autograd.grad({%s}, {%s})[1]', loss(g, name), name)
end
function G.second(g)
   local name = g:name 'g'
   g:line('local %s = x:clone():requiresGrad(true)', name)
   g:line('local d%s = torch.autograd.grad({torch.pow(%s, 3):sum()}, {%s}, nil, {createGraph = true})[1]', name, name, name)
   g:line('log[#log + 1] = torch.autograd.grad({d%s:sum()}, {%s})[1]', name, name)
end
function G.escapes(g) g:line('t.history = %s', g:one {'x:clone():requiresGrad(true) * 2', 'nil', '(t.history or x):detach()'}) end
function G.later(g) g:line 'if t.history and t.history:requiresGrad() then pcall(function() t.history:sum():backward() end) end' end
function G.without(g) g:let('vec', 'a', 'torch.noGrad(function() return %s * 2 end)', g:anyVec()) end
function G.mode(g) g:line('log[#log + 1] = %s', g:one {'torch.noGrad(function() return (weight * 2):requiresGrad() end)',
   'weight:requiresGrad()', 'weight:isLeaf()', 'weight:grad() ~= nil', 'weight:detach():requiresGrad()'}) end
function G.own(g)
   g:line('local o%d = lib.Double.apply(x:clone():requiresGrad(true))', g.names)
   g:line('o%d:sum():backward()', g.names)
end
function G.grad(g) g:line('log[#log + 1] = torch.grad(function(p) return torch.pow(p, 2):sum() end)(%s:clone())', g:one {'x', 'y'}) end
function G.microbatches(g)
   g:line 'do'
   g:line '   weight:requiresGrad(true)'
   g:line '   weight:setGrad(nil)'
   g:line('   for i = 1, 2 do (%s / 2):backward() end', loss(g, 'weight'))
   g:line('   local size = weight:grad():norm()')
   g:line('   torch.noGrad(function() %s end)', g:one {'if size > 1 then weight:grad():mul(1 / size) end weight:add(-0.1, weight:grad())',
      'weight:add(-0.1, weight:grad())'})
   g:line '   weight = weight:detach()'
   g:line 'end'
end

-- Modules ------------------------------------------------------------------------------------------------------------------------

function N.forward(g) g:line('log[#log + 1] = net:forward(lib.batch(%s)):clone()', g:one {'x', 'y'}) end
function N.forwardKept(g) g:line('t.out = net:forward(lib.batch(x))') end
function N.step(g)
   g:line 'do'
   g:line '   local input, target = lib.batch(x), lib.target(y)'
   g:line('   %s', g:one {'net:zeroGradParameters()', 'grads:zero()'})
   g:line '   local out = net:forward(input)'
   g:line '   local loss = criterion:forward(out, target)'
   g:line '   net:backward(input, criterion:backward(out, target))'
   g:line('   %s', g:one {'net:updateParameters(0.1)', 'params:add(-0.1, grads)', 'params:add(-sgd.learningRate, grads)',
      'grads:clamp(-0.1, 0.1) params:add(-0.1, grads)',
      'if loss ~= loss then error "nan" end params:add(-0.1, grads)'})
   g:line '   log[#log + 1] = loss'
   g:line 'end'
end
function N.optim(g)
   g:line 'do'
   g:line '   local input, target = lib.batch(x), lib.target(y)'
   g:line '   local function feval()'
   g:line '      grads:zero()'
   g:line '      local out = net:forward(input)'
   g:line '      local loss = criterion:forward(out, target)'
   g:line '      net:backward(input, criterion:backward(out, target))'
   g:line('      %s', g:one {'', 'grads:mul(0.5)', 'count = count + 1'})
   g:line '      return loss, grads'
   g:line '   end'
   g:line('   local _, fs = lib.optim.%s(feval, params, %s)', g:one {'sgd', 'adam', 'adagrad', 'rmsprop'}, g:one {'sgd',
      '{learningRate = 0.1}', 'cfg.optim'})
   g:line '   log[#log + 1] = fs[1]'
   g:line 'end'
end
function N.mode(g) g:line('net:%s()', g:one {'training', 'evaluate'}) end
function N.decay(g) g:line('sgd.%s = %s', g:one {'learningRate', 'weightDecay', 'momentum'}, g:one {'0.05', '0.1 / (count + 1)', '0.5'}) end
function N.read(g) g:line('log[#log + 1] = %s', g:one {'net:get(1).weight:sum()', 'net.output:clone()', '#net.modules', 'params:norm()',
   'torch.type(net:get(2))', 'net.train'}) end
function N.clear(g) g:line(g:one {'params:mul(0.9)', 'net:get(1).bias:fill(0.1)', 'net:zeroGradParameters()', 'grads:add(0.1)'}) end

-- Forward in one call, backward in another, or in the real VM.
local O = {}
function O.forward(g)
   g:line('if net then t.input = lib.batch(%s) t.out = net:forward(t.input) end', g:one {'x', 'y'})
end
function O.backward(g)
   g:line('if t.input and t.out then %snet:backward(t.input, torch.ones(3, 2)) end', g:one {'', '', 'grads:zero() '})
   g:line('log[#log + 1] = grads and grads:norm()')
end
function O.gradInput(g) g:line 'if t.input and t.out then log[#log + 1] = net:updateGradInput(t.input, torch.ones(3, 2)):clone() end' end
function O.disabled(g)
   g:line('if net then')
   g:line('   local input = lib.batch(%s)', g:one {'x', 'y'})
   g:line '   local out = net:forward(input)'
   g:line(g:one {'   lib.backward(net, input, out)', '   lib.note(log, 1) net:backward(input, out * 2)', '   t.later = function() net:backward(input, out) end'})
   g:line 'end'
end
function O.later(g) g:line 'if t.later then t.later() t.later = nil end' end
function O.twice(g)
   g:line 'if net then'
   g:line '   local a, b = lib.batch(x), lib.batch(y)'
   g:line '   local out = net:forward(a):clone()'
   g:line '   log[#log + 1] = net:forward(b):sum()'
   g:line '   net:backward(b, out)'
   g:line 'end'
end
function O.tape(g)
   local name = g:name 'g'
   g:line('local %s = %s:clone():requiresGrad(true)', name, g:one {'x', 'y'})
   g:line('local %sy = torch.tanh(%s * %s)', name, name, g:one {'2', 'n', name})
   g:line(g:one {'lib.tape(%sy:sum())', '%sy:sum():backward()', 't.taped = %sy', 'lib.note(log, 2) %sy:sum():backward()'}, name)
   g:line('log[#log + 1] = %s:grad() and %s:grad():clone()', name, name)
end
function O.taped(g) g:line 'if t.taped then t.taped:sum():backward() t.taped = nil end' end
function O.update(g) g:line(g:one {'if net then net:updateParameters(0.1) end', 'if params then params:add(-0.1, grads) end', 'if net then net:zeroGradParameters() end'}) end

Gen.family('outside', O)
Gen.family('gradients', G)
Gen.family('nets', N)
